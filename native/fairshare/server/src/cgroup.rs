//! Which Slurm job a process belongs to: the control group that Slurm put it into.
//!
//! Users can be given control groups of their own, and make some below with any name. A path is believed only
//! where it begins as Slurm's do, and only root can write in the group of the job and in all above it.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::accounts::user_of;

const MOUNT: &str = "/sys/fs/cgroup";

/// The number of the Slurm job of a process of user `uid`, None where it is in none.
pub fn slurm_job(pid: i32, uid: u32) -> Option<u64> {
    // The number can be another process's by now, never another user's: all is read of the process that it is.
    let process = File::open(format!("/proc/{pid}")).ok()?;
    let read = |name| fs::read_to_string(format!("/proc/self/fd/{}/{name}", process.as_raw_fd())).ok();
    if effective_user(&read("status")?)? != uid {
        return None;
    }
    let text = read("cgroup")?;
    let owner = user_of(uid); // under whose name Slurm knows it
    let mut groups = text.lines().filter_map(|line| group_of_job(line, owner));
    groups.find_map(|(path, job)| only_roots(&path).then_some(job))
}

fn effective_user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The folder of the job's group that a line of /proc/PID/cgroup names, and the job's number. Slurm has
/// /slurm/uid_U/job_N in version 1, /system.slice/slurmstepd.scope/job_N in version 2; with several slurmd's
/// on a machine their names stand in front or behind.
fn group_of_job(line: &str, uid: u32) -> Option<(PathBuf, u64)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let mut folder = PathBuf::from(MOUNT);
    folder.push(controllers.trim_start_matches("name="));
    let mut parts = path.split('/').skip(1).peekable();
    let first = parts.next()?;
    folder.push(first);
    if first == "system.slice" {
        let scope = parts.next().filter(|scope| scope.ends_with("slurmstepd.scope"))?;
        folder.push(scope);
    } else if !first.starts_with("slurm") {
        return None;
    }
    if let Some(user) = parts.next_if(|part| part.starts_with("uid_")) {
        if user["uid_".len()..].parse() != Ok(uid) {
            return None;
        }
        folder.push(user);
    }
    let job = parts.next()?;
    let number = job.strip_prefix("job_")?.parse().ok()?;
    folder.push(job);
    Some((folder, number))
}

/// Whether root alone can write in a group and in those above it, and put processes into it.
fn only_roots(group: &Path) -> bool {
    let safe = |path: &Path| {
        fs::symlink_metadata(path)
            .is_ok_and(|found| found.uid() == 0 && found.permissions().mode() & 0o022 == 0)
    };
    safe(&group.join("cgroup.procs")) && group.ancestors().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurms_job_is_found_in_both_cgroup_versions() {
        let found = |line| group_of_job(line, 1000).map(|(path, job)| (path.display().to_string(), job));
        assert_eq!(
            found("4:memory:/slurm/uid_1000/job_4711/step_0/task_0"),
            Some(("/sys/fs/cgroup/memory/slurm/uid_1000/job_4711".into(), 4711))
        );
        assert_eq!(
            found("0::/system.slice/node7_slurmstepd.scope/job_42/step_batch/user/task_0"),
            Some((
                "/sys/fs/cgroup/system.slice/node7_slurmstepd.scope/job_42".into(),
                42
            ))
        );
        assert_eq!(found("4:memory:/slurm/uid_1001/job_4711"), None, "another user's");
    }

    #[test]
    fn what_only_looks_like_slurms_is_not() {
        for line in [
            "0::/user.slice/job_7/session.scope",
            "0::/user.slice/user-1000.slice/user@1000.service/slurm/job_42",
            "0::/system.slice/mine.service/slurmstepd.scope/job_42",
            "0::/../slurm/job_42",
            "0::/slurm/deeper/job_42",
            "0::/slurm/job_x",
            "nonsense",
        ] {
            assert_eq!(group_of_job(line, 1000), None, "{line}");
        }
    }

    #[test]
    fn groups_that_others_write_to_are_not_believed() {
        assert!(!only_roots(Path::new("/tmp")), "it has no cgroup.procs");
        assert_eq!(effective_user("Name:\tx\nUid:\t5\t6\t7\t8\n"), Some(6));
    }
}
