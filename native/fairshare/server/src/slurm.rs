//! How large Slurm's jobs are: asked of Slurm itself, once for each job, on a thread of its own.
//!
//! Until the answer is there, and where there is none, the job counts as one node (or as what a ticket of
//! its own says).

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Slurm that has not answered by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// After this time a job that Slurm did not know is asked for again.
const AGAIN: Duration = Duration::from_secs(60);
/// Jobs that are remembered.
const MOST: usize = 65536;

#[derive(Clone, Copy)]
enum Known {
    Size(u32),
    /// Asked for, or asked for in vain.
    Since(Instant),
}

/// Sizes that are known, and questions to the thread that finds out more.
pub struct Slurm {
    known: Mutex<HashMap<u64, Known>>,
    questions: Mutex<Sender<u64>>,
}

impl Slurm {
    pub fn new() -> (Self, Receiver<u64>) {
        let (questions, asked) = mpsc::channel();
        let slurm = Self {
            known: Mutex::default(),
            questions: Mutex::new(questions),
        };
        (slurm, asked)
    }

    /// The nodes of a job, where they are known; otherwise they will be, and the job is then told of them.
    pub fn size(&self, job: u64) -> Option<u32> {
        let mut known = self.known.lock().expect("no panics under this lock");
        match known.get(&job) {
            Some(Known::Size(nodes)) => return Some(*nodes),
            Some(Known::Since(when)) if when.elapsed() < AGAIN => return None,
            _ => {}
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(job, Known::Since(Instant::now()));
        // Without the thread (it has ended with the server) nobody hears it, and nobody has to.
        let _ = self.questions.lock().expect("no panics").send(job);
        None
    }

    pub fn found(&self, job: u64, nodes: u32) {
        let mut known = self.known.lock().expect("no panics under this lock");
        known.insert(job, Known::Size(nodes));
    }
}

/// Answer questions, as long as `tell`, which gets a job and its nodes where they are known, returns true.
/// `command`: words, `{job}` stands for the number.
pub fn start(
    asked: Receiver<u64>,
    command: String,
    tell: impl Fn(u64, Option<u32>) -> bool + Send + 'static,
) {
    std::thread::spawn(move || asked.into_iter().all(|job| tell(job, ask(&command, job))));
}

/// Run the command, and return the nodes that it says.
fn ask(command: &str, job: u64) -> Option<u32> {
    let mut words = command
        .split_whitespace()
        .map(|word| word.replace("{job}", &job.to_string()));
    let mut child = Command::new(words.next()?)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // What it says is short: it fits the pipe, so it can be read after the end.
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().ok()?;
    nodes_of(&String::from_utf8_lossy(&output.stdout)).filter(|_| output.status.success())
}

/// "NumNodes=4" as scontrol has it ("4-4" while the job waits), or a number alone, as squeue -h -o %D.
fn nodes_of(text: &str) -> Option<u32> {
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("NumNodes="))
        .or_else(|| text.split_whitespace().next())?;
    let digits = word.split('-').next()?;
    digits.parse().ok().filter(|nodes| *nodes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_of_slurm_are_understood() {
        let scontrol = "JobId=77 JobName=a b UserId=c(1) NumNodes=4 NumCPUs=64 NumTasks=8\n";
        assert_eq!(nodes_of(scontrol), Some(4));
        assert_eq!(nodes_of("NumNodes=3-3\n"), Some(3));
        assert_eq!(nodes_of("16\n"), Some(16));
        for nothing in ["", "slurm_load_jobs error", "NumNodes=0", "0"] {
            assert_eq!(nodes_of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_job_is_asked_for_once_and_then_known() {
        let (slurm, asked) = Slurm::new();
        assert_eq!((slurm.size(7), slurm.size(7)), (None, None));
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [7]);
        slurm.found(7, 12);
        assert_eq!(slurm.size(7), Some(12));
    }

    #[test]
    fn commands_that_fail_say_nothing() {
        assert_eq!(ask("echo NumNodes={job}", 9), Some(9));
        assert_eq!(ask("false", 9), None);
        assert_eq!(ask("/no/such/program", 9), None);
        assert_eq!(ask("", 9), None);
    }
}
