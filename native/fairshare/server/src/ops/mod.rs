//! The operations, one file for each group. Each gets a request that was checked for form alone, and
//! works with the rights of the client that sent it.

mod attributes;
mod data;
mod directory;
mod locks;
mod names;
mod open;
mod xattr;

use wire::Op;

use crate::call::Call;
use crate::control;
use crate::creds;
use crate::errno::Errno;
use crate::outcome::Outcome;
use crate::status;

/// Whether a request is about the server and no work on files.
fn asks_the_server(op: Op) -> bool {
    matches!(op, Op::Ping | Op::Status | Op::Ticket | Op::Reload | Op::SendAway)
}

/// Carry out a request. An error becomes the negative result of the reply.
pub fn carry_out(call: &Call<'_>) -> Outcome {
    if !asks_the_server(call.request.op) {
        call.session.entry.counters.operation();
    }
    let outcome = creds::assume(&call.session.creds).and_then(|()| match call.request.op {
        Op::Ping => Ok(Outcome::default()),
        Op::Status => status::status(call),
        Op::Ticket => status::ticket(call),
        Op::Reload => control::reload(call),
        Op::SendAway => control::send_away(call),
        Op::Vouch => open::vouch(call),
        Op::Join => control::join(call),
        Op::Dropped => Ok(Outcome::default()), // heard where frames come in
        Op::Open => open::open(call),
        Op::Close => open::close(call),
        Op::Read => data::read(call),
        Op::Write => data::write(call),
        Op::Seek => data::seek(call),
        Op::Truncate => data::truncate(call),
        Op::Allocate => data::allocate(call),
        Op::Fsync => data::fsync(call),
        Op::GetAttributes => attributes::get(call),
        Op::SetAttributes => attributes::set(call),
        Op::Access => attributes::access(call),
        Op::Statfs => attributes::statfs(call),
        Op::ReadDirectory => directory::read(call),
        Op::MakeDirectory => names::make_directory(call),
        Op::Unlink => names::unlink(call),
        Op::Rename => names::rename(call),
        Op::Link => names::link(call),
        Op::Symlink => names::symlink(call),
        Op::Readlink => names::readlink(call),
        Op::MakeNode => names::make_node(call),
        Op::GetXattr => xattr::get(call),
        Op::SetXattr => xattr::set(call),
        Op::ListXattr => xattr::list(call),
        Op::RemoveXattr => xattr::remove(call),
        Op::Lock => locks::record(call),
    });
    outcome.unwrap_or_else(|Errno(errno)| Outcome::of(-i64::from(errno)))
}
