//! Locks of files, which mounts ask for: fcntl's, and flock's, which are on all of a file. Nobody waits here: a mount that
//! wants to wait asks again.

use wire::HeldLock;

use crate::call::Call;
use crate::errno::{Errno, Result};
use crate::locks::{account_of_session, RecordLock};
use crate::outcome::Outcome;

/// Set or ask for a lock. Asked for, the one in the way comes back: its type in the result (F_UNLCK for none), the rest in
/// the data. Whether a file may be locked the kernel has looked at.
pub fn record(call: &Call<'_>) -> Result<Outcome> {
    let (request, session) = (call.request, call.session);
    let file = call.handle()?.id_of_file;
    let start = u64::try_from(request.offset).map_err(|_| Errno(libc::EINVAL))?;
    let end = match request.size {
        0 => u64::MAX,
        size => start.checked_add(size).ok_or(Errno(libc::EOVERFLOW))?,
    };
    let (kind, locks) = (request.mode as i32, &call.server.records);
    let setting = request.flags & wire::flags::SET != 0;
    let owner = (session.cache.unwrap_or(session.id), request.handle2);
    match kind {
        libc::F_RDLCK | libc::F_WRLCK => {}
        libc::F_UNLCK if setting => {
            locks.unset(file, owner, start, end)?;
            return Ok(Outcome::default());
        }
        _ => return Err(Errno(libc::EINVAL)),
    }
    let wanted = RecordLock {
        start,
        end,
        exclusive: kind == libc::F_WRLCK,
        owner,
        account: if session.inside {
            u64::from(session.creds.uid)
        } else {
            account_of_session(session.id)
        },
        pid: request.mask,
    };
    if setting {
        locks.set(file, wanted)?;
        return Ok(Outcome::default());
    }
    let Some(other) = locks.conflict(file, &wanted) else {
        return Ok(Outcome::of(i64::from(libc::F_UNLCK)));
    };
    let held = HeldLock {
        start: other.start,
        end: other.end.saturating_sub(1).min(i64::MAX as u64),
        pid: other.pid,
    };
    Ok(Outcome {
        result: i64::from(if other.exclusive {
            libc::F_WRLCK
        } else {
            libc::F_RDLCK
        }),
        ..call.tell(&held.to_bytes())?
    })
}
