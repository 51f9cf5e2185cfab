//! What a policy promises its jobs while all of them have requests, without simulating anything: its levels,
//! the transition matrices between them, each job's share and its segment of the range that the
//! scheduler `token` draws from (ThemisIO, section 3, figures 2 to 4).

use policy::{shares, transition_matrices, Job, TransitionMatrix};
use serde::Serialize;

use crate::config::Config;
use crate::result::name;

#[derive(Serialize)]
pub struct Promise {
    /// In its full name.
    pub policy: String,
    /// Outermost first, the last one tells single jobs apart; none under `fifo`.
    pub levels: Vec<String>,
    /// One for each level: from the entities of the level above to those of this one.
    pub matrices: Vec<Matrix>,
    pub jobs: Vec<Promised>,
}

/// Each column has one entry that is not zero; columns of the last one are the jobs.
#[derive(Serialize)]
pub struct Matrix {
    pub rows: usize,
    pub columns: Vec<Entry>,
}

#[derive(Serialize)]
pub struct Entry {
    pub row: usize,
    /// Fraction of the row's part.
    pub value: f64,
}

#[derive(Serialize)]
pub struct Promised {
    pub id: u64,
    pub name: String,
    /// Of the service; null where nobody is promised anything.
    pub share: Option<f64>,
    /// Begin and end of its segment of [0, 1].
    pub segment: Option<(f64, f64)>,
}

/// What the policy of the document promises its jobs; what is wrong with the document, in one sentence.
pub fn promise(config: &Config) -> Result<Promise, String> {
    config.check()?;
    let policy = config.policy()?;
    let jobs: Vec<Job> = config.jobs.iter().map(|job| job.job()).collect();
    let chain = if policy.is_fifo() {
        Vec::new()
    } else {
        transition_matrices(&policy, &jobs)
    };
    let shares = (!policy.is_fifo()).then(|| shares(&policy, &jobs));
    let mut begin = 0.0;
    let promised = config.jobs.iter().enumerate().map(|(place, job)| {
        let share = shares.as_ref().map(|shares| shares[place]);
        let segment = share.map(|share| {
            let end = (begin + share).min(1.0);
            (std::mem::replace(&mut begin, end), end)
        });
        Promised {
            id: job.id,
            name: name(job.name.as_deref(), job.id),
            share,
            segment,
        }
    });
    let jobs = promised.collect();
    let levels = chain.iter().zip(policy.tree_levels());
    Ok(Promise {
        policy: policy.to_string(),
        levels: levels.map(|(_, level)| level.to_string()).collect(),
        matrices: chain.iter().map(matrix).collect(),
        jobs,
    })
}

fn matrix(of: &TransitionMatrix) -> Matrix {
    let columns = (0..of.columns()).map(|column| {
        let (row, value) = of.entry(column);
        Entry { row, value }
    });
    Matrix {
        rows: of.rows(),
        columns: columns.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: &str, jobs: &str) -> Promise {
        let document = format!("{{\"policy\": \"{policy}\", \"jobs\": {jobs}}}");
        promise(&serde_json::from_str(&document).unwrap()).unwrap()
    }

    /// Figure 4: two users, the first with two jobs and the second with four, all alike.
    #[test]
    fn the_papers_example() {
        let jobs: Vec<String> = (1..=6)
            .map(|id| format!("{{\"id\": {id}, \"user\": {}}}", if id < 3 { 1 } else { 2 }))
            .collect();
        let found = of("user-fair", &format!("[{}]", jobs.join(",")));
        assert_eq!(found.levels, ["user", "job"]);
        assert_eq!((found.matrices[0].rows, found.matrices[0].columns.len()), (1, 2));
        assert_eq!((found.matrices[1].rows, found.matrices[1].columns.len()), (2, 6));
        assert_eq!(found.matrices[1].columns[5].row, 1);
        assert_eq!(found.matrices[1].columns[5].value, 0.25);
        let segments: Vec<(f64, f64)> = found.jobs.iter().map(|job| job.segment.unwrap()).collect();
        // A quarter for each of user 1's jobs, an eighth for each of user 2's.
        assert_eq!(segments[0], (0.0, 0.25));
        assert_eq!(segments[1], (0.25, 0.5));
        assert_eq!(segments[5], (0.875, 1.0));
    }

    #[test]
    fn first_in_first_out_promises_nothing() {
        let found = of("fifo", "[{\"id\": 1}, {\"id\": 2}]");
        assert!(found.levels.is_empty() && found.matrices.is_empty());
        assert!(found
            .jobs
            .iter()
            .all(|job| job.share.is_none() && job.segment.is_none()));
    }
}
