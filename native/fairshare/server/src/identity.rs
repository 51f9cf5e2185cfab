//! Who a client is, from sources that it cannot forge.
//!
//! - On a Unix socket the kernel names the user (SO_PEERCRED), groups (SO_PEERGROUPS) and process.
//! - The job is Slurm's, where the process lies in a control group that Slurm made ([`crate::cgroup`]); else
//!   what a ticket says that the administrator had this server's key sign; else all processes of a user are
//!   one job of size 1. What users had signed themselves says who they are, and makes jobs only where the
//!   administrator lets it ([`Makers`]).
//! - Over TCP there is no kernel to ask, so a ticket is needed, and proof that its secret is known.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use policy::Job;
use sha2::Sha256;
use wire::{ticket, Hello, Ticket, CHALLENGE_BYTES};

use crate::accounts;
use crate::cgroup::slurm_job;
use crate::config::Makers;
use crate::creds::{can_impersonate, Creds};
use crate::errno::{check, Errno, Result};
use crate::jobs::{Described, Proof};
use crate::slurm::Slurm;

/// What the kernel says of the other end.
#[derive(Debug, Clone)]
pub enum Peer {
    Local { creds: Creds, pid: i32 },
    Remote,
}

/// Who a session works for, and what it is accounted to.
#[derive(Debug, Clone)]
pub struct Identity {
    pub creds: Creds,
    pub job: Described,
}

/// The server's key: signs tickets. Kept in the data folder, readable by its owner alone.
pub struct Key(Vec<u8>);

impl Key {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The key for messages between servers: another one than that of tickets.
    pub fn for_servers(&self) -> Vec<u8> {
        keyed(&self.0, b"fairshare servers").to_vec()
    }

    /// What the holder of a ticket must know.
    pub fn secret(&self, ticket: &Ticket) -> [u8; 32] {
        keyed(&self.0, &ticket.to_bytes())
    }

    /// What shows the holder of a ticket that its server answers: nobody else has the key.
    pub fn answer(&self, ticket: &Ticket, challenge: &[u8; CHALLENGE_BYTES], hello: &Hello) -> [u8; 32] {
        keyed(&self.secret(ticket), &wire::answer(challenge, &hello.nonce))
    }

    /// Whether a hello's proof answers our challenge.
    fn proves(&self, ticket: &Ticket, challenge: &[u8], proof: &[u8; 32]) -> bool {
        proven(&self.secret(ticket), challenge, proof)
    }
}

/// Whether a message was signed with a key. Takes as long for every wrong signature.
pub fn proven(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(message);
    mac.verify_slice(signature).is_ok()
}

/// HMAC-SHA256.
pub fn keyed(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The user at the other end of a Unix socket.
pub fn user_of(socket: BorrowedFd<'_>) -> Result<u32> {
    Ok(credentials(socket)?.uid)
}

fn credentials(socket: BorrowedFd<'_>) -> Result<libc::ucred> {
    // SAFETY: buffer and length agree.
    unsafe {
        let mut cred: libc::ucred = std::mem::zeroed();
        let mut length = std::mem::size_of::<libc::ucred>() as u32;
        check(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &mut length,
        ))?;
        Ok(cred)
    }
}

/// The numbers that stand for all users, and all groups, that this process's user namespace does not know, where it does
/// not know some. Each of them looks like every other, and like whoever has that number in the namespace.
fn stand_ins() -> &'static (Option<u32>, Option<u32>) {
    static FOUND: OnceLock<(Option<u32>, Option<u32>)> = OnceLock::new();
    FOUND.get_or_init(|| {
        let read = |path: String| fs::read_to_string(path).unwrap_or_default();
        let of = |kind: &str| {
            let map = read(format!("/proc/self/{kind}_map"));
            stand_in(&map, &read(format!("/proc/sys/kernel/overflow{kind}")))
        };
        (of("uid"), of("gid"))
    })
}

/// The number that stands for ids without one, where a namespace's map leaves ids out. A map that cannot be read leaves
/// out some.
fn stand_in(map: &str, overflow: &str) -> Option<u32> {
    const USUAL: u32 = 65534;
    let counts = map
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2)?.parse::<u32>().ok());
    let known: u64 = counts.map(u64::from).sum();
    (known < u64::from(u32::MAX)).then(|| overflow.trim().parse().unwrap_or(USUAL))
}

/// Whether a user's number stands for all those that this process's user namespace does not know.
pub fn is_anybody(uid: u32) -> bool {
    stand_ins().0 == Some(uid)
}

/// Ask the kernel who is at the other end of a Unix socket.
pub fn peer_of(socket: BorrowedFd<'_>) -> Result<Peer> {
    let fd = socket.as_raw_fd();
    let cred = credentials(socket)?;
    let mut groups = vec![0_u32; 65536];
    // SAFETY: buffer and length agree.
    let count = unsafe {
        let mut length = (groups.len() * 4) as u32;
        check(libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &mut length,
        ))?;
        length as usize / 4
    };
    groups.truncate(count);
    groups.retain(|gid| stand_ins().1 != Some(*gid));
    Ok(Peer::Local {
        creds: Creds {
            uid: cred.uid,
            gid: cred.gid,
            groups,
        },
        pid: cred.pid,
    })
}

/// Decide who a client is; the error is a sentence for the user.
pub fn identify(
    peer: &Peer,
    hello: &Hello,
    challenge: &[u8; CHALLENGE_BYTES],
    key: &Key,
    sizes: &Slurm,
    makers: Makers,
) -> std::result::Result<Identity, (Errno, String)> {
    let refuse = |errno, reason: &str| Err((Errno(errno), reason.to_owned()));
    if let Some((ticket, proof)) = &hello.ticket {
        if !key.proves(ticket, challenge, proof) {
            return refuse(libc::EACCES, "the ticket is not signed by this server's key");
        }
        if ticket.expires < now() {
            return refuse(libc::EACCES, "the ticket has expired");
        }
    }
    let ticket = hello.ticket.as_ref().map(|(ticket, _)| ticket);
    let creds = match (peer, ticket) {
        (Peer::Local { creds, .. }, Some(ticket)) if ticket.uid != creds.uid => {
            return refuse(libc::EACCES, "the ticket was made out to another user");
        }
        (Peer::Local { creds, .. }, _) => creds.clone(),
        (Peer::Remote, Some(ticket)) => Creds {
            uid: ticket.uid,
            gid: ticket.gid,
            groups: vec![],
        },
        (Peer::Remote, None) => {
            return refuse(
                libc::EACCES,
                "a connection over TCP needs a ticket (tiercel share ticket)",
            );
        }
    };
    if let Peer::Local { creds, .. } = peer {
        if stand_ins().0 == Some(creds.uid) || stand_ins().1 == Some(creds.gid) {
            return refuse(
                libc::EPERM,
                "this server's user namespace has no number for your user and group",
            );
        }
    }
    // SAFETY: no preconditions.
    if !can_impersonate() && creds.uid != unsafe { libc::geteuid() } {
        return refuse(
            libc::EPERM,
            "this server does not run as root, so it serves its own user alone",
        );
    }
    let ticket = ticket.filter(|ticket| ticket.by == ticket::ADMINISTRATOR || makers == Makers::Users);
    let job = match (peer, ticket) {
        (Peer::Local { pid, .. }, None) => local_job(&creds, *pid, sizes),
        (Peer::Local { pid, .. }, Some(ticket)) => {
            let slurm = slurm_job(*pid, creds.uid).map(|number| format!("slurm-{number}"));
            // A ticket may say more of the same Slurm job (its size), never put the process into another.
            if slurm.is_some_and(|name| name != ticket.job) {
                local_job(&creds, *pid, sizes)
            } else {
                of_ticket(ticket)
            }
        }
        (Peer::Remote, None) => of_user(&creds),
        (Peer::Remote, Some(ticket)) => of_ticket(ticket),
    };
    Ok(Identity { creds, job })
}

/// The job of a process without a ticket: Slurm's, as large as Slurm says, or its user's.
pub fn local_job(creds: &Creds, pid: i32, sizes: &Slurm) -> Described {
    let Some(number) = slurm_job(pid, creds.uid) else {
        return of_user(creds);
    };
    let size = sizes.size(number).unwrap_or(1);
    let (user, group) = accounts::of(creds.uid, creds.gid);
    let job = |id| Job::new(id).user(user).group(group).size(size);
    Described::new(user, &format!("slurm-{number}"), job, Proof::Kernel)
}

/// The one job of all that a user cannot prove to be another.
fn of_user(creds: &Creds) -> Described {
    let (user, group) = accounts::of(creds.uid, creds.gid);
    let job = |id| Job::new(id).user(user).group(group);
    Described::new(user, &format!("user-{user}"), job, Proof::Kernel)
}

fn of_ticket(ticket: &Ticket) -> Described {
    // What an administrator says counts as it is said.
    let (uid, user, group) = match ticket.by {
        ticket::ADMINISTRATOR => (ticket.uid, ticket.user, ticket.group),
        _ => {
            let (user, group) = accounts::of(ticket.user, ticket.group);
            (user, user, group)
        }
    };
    let job = |id| {
        Job::new(id)
            .user(user)
            .group(group)
            .size(ticket.size)
            .priority(ticket.priority)
    };
    let proof = match ticket.by {
        ticket::ADMINISTRATOR => Proof::Ticket {
            expires: ticket.expires,
            nonce: ticket.nonce,
        },
        _ => Proof::Own,
    };
    Described::new(uid, &ticket.job, job, proof)
}

pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: [u8; CHALLENGE_BYTES] = [5; CHALLENGE_BYTES];

    fn key() -> Key {
        Key::new(b"key".to_vec())
    }

    fn ticket() -> Ticket {
        Ticket {
            uid: Creds::own().uid,
            gid: 0,
            user: 7,
            group: 8,
            size: 4,
            priority: 1,
            expires: now() + 60,
            nonce: 1,
            by: ticket::ADMINISTRATOR,
            job: "climate".into(),
        }
    }

    fn hello(ticket: Option<Ticket>) -> Hello {
        let proof = |ticket: &Ticket| keyed(&key().secret(ticket), &CHALLENGE);
        Hello {
            wants: 0,
            voucher: 0,
            ticket: ticket.map(|ticket| (ticket.clone(), proof(&ticket))),
            nonce: [0; wire::NONCE_BYTES],
        }
    }

    fn asks(peer: &Peer, hello: &Hello, makers: Makers) -> std::result::Result<Identity, (Errno, String)> {
        identify(peer, hello, &CHALLENGE, &key(), &Slurm::new().0, makers)
    }

    #[test]
    fn a_signed_ticket_counts_and_a_changed_one_does_not() {
        let creds = Creds::own();
        let local = |hello: &Hello| {
            let creds = creds.clone();
            asks(&Peer::Local { creds, pid: 0 }, hello, Makers::Administrator)
        };
        let good = hello(Some(ticket()));
        let job = local(&good).unwrap().job.job;
        assert_eq!((job.size, job.user), (4, 7));

        let mut larger = good.clone();
        larger.ticket.as_mut().unwrap().0.size = 400;
        assert!(local(&larger).is_err(), "the size is signed");
        let mut other = good;
        other.ticket.as_mut().unwrap().1 = keyed(&key().secret(&ticket()), &[6; CHALLENGE_BYTES]);
        assert!(local(&other).is_err(), "a proof answers one challenge");
        let foreign = Ticket {
            uid: creds.uid + 1,
            ..ticket()
        };
        assert!(local(&hello(Some(foreign))).is_err(), "another's ticket");
        let expires = 1;
        assert!(local(&hello(Some(Ticket { expires, ..ticket() }))).is_err());
    }

    #[test]
    fn a_users_own_ticket_makes_a_job_only_where_the_administrator_lets_it() {
        let own = hello(Some(Ticket {
            user: Creds::own().uid,
            size: 1,
            by: ticket::USER,
            ..ticket()
        }));
        let named = |makers| asks(&Peer::Remote, &own, makers).unwrap().job.name;
        assert_eq!(named(Makers::Users), "climate");
        assert_eq!(named(Makers::Administrator), format!("user-{}", Creds::own().uid));
    }

    #[test]
    fn a_number_that_stands_for_all_others_is_nobodys() {
        let all = "         0          0 4294967295\n";
        assert_eq!(stand_in(all, "65534\n"), None, "here it is a user like any other");
        let rootless = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(stand_in(rootless, "65534\n"), Some(65534));
        assert_eq!(stand_in("0 1000 1\n", "99\n"), Some(99));
        assert_eq!(stand_in("", ""), Some(65534), "no /proc: it cannot be told");
    }

    #[test]
    fn over_tcp_nobody_is_anybody_without_a_ticket() {
        assert!(asks(&Peer::Remote, &hello(None), Makers::Administrator).is_err());
    }
}
