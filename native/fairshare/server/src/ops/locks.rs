//! fcntl's record locks and flock. Neither waits here: a client that wants to wait asks again.

use crate::call::Call;
use crate::errno::{check, Errno, Result};
use crate::locks::RecordLock;
use crate::outcome::Outcome;

/// Set or ask for a record lock. Asked for, the one in the way comes back: its type in the result
/// (F_UNLCK for none), start in `value`, length in the data (u64; 0 for "to the end").
pub fn record(call: &Call<'_>) -> Result<Outcome> {
    let request = call.request;
    let handle = call.handle()?;
    let start = u64::try_from(request.offset).map_err(|_| Errno(libc::EINVAL))?;
    let end = match request.size {
        0 => u64::MAX,
        size => start.checked_add(size).ok_or(Errno(libc::EOVERFLOW))?,
    };
    let kind = request.mode as i32;
    let setting = request.flags & wire::flags::SET != 0;
    let allowed = match kind {
        libc::F_RDLCK => handle.readable() || !setting,
        libc::F_WRLCK => handle.writable() || !setting,
        libc::F_UNLCK if setting => {
            call.server
                .records
                .unset(handle.id_of_file, call.session.id, start, end)?;
            return Ok(Outcome::default());
        }
        _ => return Err(Errno(libc::EINVAL)),
    };
    if !allowed {
        return Err(Errno(libc::EBADF));
    }
    let wanted = RecordLock {
        start,
        end,
        exclusive: kind == libc::F_WRLCK,
        owner: call.session.id,
    };
    if setting {
        call.server.records.set(handle.id_of_file, wanted)?;
        return Ok(Outcome::default());
    }
    let Some(other) = call.server.records.conflict(handle.id_of_file, &wanted) else {
        return Ok(Outcome::of(i64::from(libc::F_UNLCK)));
    };
    let length = if other.end == u64::MAX {
        0
    } else {
        other.end - other.start
    };
    let kind = if other.exclusive {
        libc::F_WRLCK
    } else {
        libc::F_RDLCK
    };
    Ok(Outcome {
        result: i64::from(kind),
        value: other.start,
        ..call.tell(&length.to_le_bytes())?
    })
}

/// flock belongs to an open file, and the backing descriptor is one: the kernel keeps these locks.
pub fn whole_file(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    // SAFETY: a plain call.
    check(unsafe { libc::flock(handle.fd(), call.request.mode as i32 | libc::LOCK_NB) })?;
    Ok(Outcome::default())
}
