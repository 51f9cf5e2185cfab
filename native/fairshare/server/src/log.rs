//! What happened, one JSON object in a line: who joined as what, who was refused and why, what was changed by whom.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{json, Map, Value};

/// Lines in a second. Beyond it they are counted: a flood must not fill the disk.
const MOST: u32 = 500;

/// Events since the server began, for whoever counts rather than reads.
#[derive(Default)]
pub struct Counts {
    pub joined: AtomicU64,
    pub refused: AtomicU64,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    second: u64,
    lines: u32,
    left_out: u64,
}

pub struct Log {
    /// None: nowhere; "-": standard error.
    path: Option<PathBuf>,
    began: Instant,
    pub counts: Counts,
    state: Mutex<State>,
}

impl Log {
    /// Open the log. The error is a sentence for the user.
    pub fn open(path: Option<PathBuf>) -> Result<Self, String> {
        let log = Self {
            path,
            began: Instant::now(),
            counts: Counts::default(),
            state: Mutex::default(),
        };
        log.reopen()?;
        Ok(log)
    }

    /// Open the file anew: it may have been moved away.
    pub fn reopen(&self) -> Result<(), String> {
        let Some(path) = self.path.as_ref().filter(|path| path.as_os_str() != "-") else {
            return Ok(());
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            // A FIFO without a reader, or one that is full, keeps nobody waiting.
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| format!("--log {}: {error}", path.display()))?;
        self.state().file = Some(file);
        Ok(())
    }

    pub fn joined(&self, fields: Value) {
        self.counts.joined.fetch_add(1, Ordering::Relaxed);
        self.tell("joined", fields);
    }

    pub fn refused(&self, fields: Value) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        self.tell("refused", fields);
    }

    /// Write an event. What cannot be written is lost: the server goes on.
    pub fn tell(&self, event: &str, fields: Value) {
        if self.path.is_none() {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = (now.as_millis() as f64) / 1000.0;
        let mut state = self.state();
        let second = self.began.elapsed().as_secs();
        if second != state.second {
            let left_out = state.left_out;
            (state.second, state.lines, state.left_out) = (second, 0, 0);
            if left_out > 0 {
                write(
                    &mut state,
                    &json!({"time": time, "event": "left out", "lines": left_out}),
                );
            }
        }
        state.lines += 1;
        if state.lines > MOST {
            state.left_out += 1;
            return;
        }
        let mut line = Map::new();
        line.insert("time".into(), json!(time));
        line.insert("event".into(), json!(event));
        if let Value::Object(fields) = fields {
            line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        write(&mut state, &Value::Object(line));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }
}

/// In one call, so that lines of several processes stay whole.
fn write(state: &mut State, line: &Value) {
    let text = format!("{line}\n");
    let _ = match &mut state.file {
        Some(file) => file.write_all(text.as_bytes()),
        None => io::stderr().write_all(text.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let path = std::env::temp_dir().join(format!("fairshare-log-{}", std::process::id()));
        let log = Log::open(Some(path.clone())).unwrap();
        for number in 0..MOST * 2 {
            log.refused(json!({"number": number, "nothing": Value::Null}));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let _ = std::fs::remove_file(&path);
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // A second may have ended meanwhile: then twice as many, and how many were left out.
        assert!(lines.len() >= MOST as usize && lines.len() <= 2 * MOST as usize + 1);
        assert_eq!(
            (&lines[0]["event"], &lines[0]["number"]),
            (&json!("refused"), &json!(0))
        );
        assert!(lines[0].get("nothing").is_none());
        assert_eq!(log.counts.refused.load(Ordering::Relaxed), u64::from(MOST * 2));
    }
}
