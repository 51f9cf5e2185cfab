//! What the schedulers know of a job.

/// Names a job within one deployment; the server maps Slurm's job ids, cgroups or tickets to it.
pub type JobId = u64;

/// A job: the requests of one program run by one user. A size or priority of 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub id: JobId,
    /// User id of the owner.
    pub user: u32,
    /// Group (or account) id that the job is charged to.
    pub group: u32,
    /// Number of compute nodes.
    pub size: u32,
    /// Weight under priority-fair: twice the priority, twice the share.
    pub priority: u32,
}

impl Job {
    /// A job of user and group 0 on one node, with priority 1.
    pub fn new(id: JobId) -> Self {
        Job {
            id,
            user: 0,
            group: 0,
            size: 1,
            priority: 1,
        }
    }

    pub fn user(mut self, user: u32) -> Self {
        self.user = user;
        self
    }

    pub fn group(mut self, group: u32) -> Self {
        self.group = group;
        self
    }

    pub fn size(mut self, nodes: u32) -> Self {
        self.size = nodes;
        self
    }

    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }
}
