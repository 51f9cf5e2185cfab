//! Jobs that an administrator has sent away, and for how long.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Jobs that were sent away: by name, of one user (to whom they are accounted) or of all.
#[derive(Default)]
pub struct SentAway(Mutex<HashMap<(String, Option<u32>), Instant>>);

impl SentAway {
    pub fn add(&self, name: &str, user: Option<u32>, until: Instant) {
        let mut jobs = self.0.lock().expect("no panics under this lock");
        jobs.retain(|_, until| *until > Instant::now());
        jobs.insert((name.to_owned(), user), until);
    }

    /// For how long a job of a user is still sent away.
    pub fn left(&self, name: &str, user: u32) -> Option<Duration> {
        let jobs = self.0.lock().expect("no panics under this lock");
        if jobs.is_empty() {
            return None;
        }
        let left = |user| {
            let until = jobs.get(&(name.to_owned(), user))?;
            until.checked_duration_since(Instant::now())
        };
        left(None).max(left(Some(user)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_sent_away_comes_back_in_time() {
        let away = SentAway::default();
        assert_eq!(away.left("job", 7), None);
        away.add("job", Some(7), Instant::now() + Duration::from_secs(60));
        assert!(away.left("job", 7).is_some());
        assert_eq!(away.left("job", 8), None, "another user's job of that name");
        assert_eq!(away.left("other", 7), None);
        away.add("job", None, Instant::now());
        assert!(away.left("job", 7).is_some());
        assert_eq!(away.left("job", 8), None, "the time is over");
    }
}
