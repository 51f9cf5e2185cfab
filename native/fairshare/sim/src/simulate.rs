//! A run from a document to its outcome.

use crate::config::Config;
use crate::result::{outcome, Outcome};
use crate::world::World;

/// Runs the simulation that the document describes; an error is one sentence that names the key.
pub fn simulate(config: &Config) -> Result<Outcome, String> {
    config.check()?;
    let mut world = World::new(config)?;
    world.run();
    Ok(outcome(config, &world))
}
