//! Requests that local clients post in shared memory.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use wire::{segment, Op, Request};

use super::Server;
use crate::connection::{Connection, Passed};
use crate::errno::{Errno, Result};
use crate::outcome::Outcome;
use crate::queue::{Pending, Place};
use crate::segment::Segment;
use crate::session::Shared;

impl Server {
    pub(super) fn make_segment(&self, uid: u32) -> Result<(Shared, Passed)> {
        let on_its_way = self.budgets.descriptors.take(uid, 1).ok_or(Errno(libc::EMFILE))?;
        let (segment, memory) = Segment::create()?;
        Ok((Shared::new(segment), Passed::new(memory, on_its_way)))
    }

    /// A client that has posted something wakes the server.
    pub(super) fn wake(&self, connection: &Arc<Connection>) {
        self.hot.rung(connection);
        self.collect(connection);
    }

    /// Look through all hot segments. Returns how many requests were found.
    pub(crate) fn scan(&self) -> usize {
        self.hot.scan(|connection| self.collect(connection))
    }

    /// Whether nobody but one client has posted lately.
    pub(crate) fn serves_one(&self) -> bool {
        self.hot.is_one()
    }

    /// Have clients wake the server from now on. False: something was posted meanwhile.
    pub(crate) fn arm(&self) -> bool {
        self.hot.arm()
    }

    /// Queue what a client has posted in its segment.
    fn collect(&self, connection: &Arc<Connection>) -> usize {
        let Some(session) = connection.session.get() else {
            return 0;
        };
        let Some(shared) = &session.shared else { return 0 };
        if !shared.segment.has_posted() {
            return 0;
        }
        // What one worker takes is queued before another takes more: pieces of one write stay in order.
        let _order = shared.collecting.lock().expect("no panics under this lock");
        let posted = shared.segment.take_posted();
        if posted == 0 {
            return 0;
        }
        // A slot that is being worked on cannot be posted again, whatever its owner does.
        let fresh = posted & !shared.busy.fetch_or(posted, Ordering::SeqCst);
        let mut pending = Vec::with_capacity(fresh.count_ones() as usize);
        for slot in (0..segment::SLOTS).filter(|slot| fresh & 1 << slot != 0) {
            match Request::parse(&shared.segment.request(slot)) {
                Ok(request) => pending.push(Pending {
                    session: Arc::clone(session),
                    request,
                    place: Place::Slot { slot },
                }),
                Err(_) => self.slot_done(shared, slot, &Outcome::of(-i64::from(libc::EPROTO))),
            }
        }
        let count = pending.len();
        // Slots are found by number, and a client that reuses one early has posted later pieces in front of
        // earlier ones. What was posted at the same time by different threads has no order.
        if pending
            .iter()
            .any(|p| p.request.op == Op::Write && p.request.flags & wire::flags::CHAINED != 0)
        {
            pending.sort_by_key(|p| p.request.offset);
        }
        self.enqueue(session.job, pending);
        count
    }

    pub(super) fn slot_done(&self, shared: &Shared, slot: usize, outcome: &Outcome) {
        shared.busy.fetch_and(!(1 << slot), Ordering::SeqCst);
        shared.segment.complete(slot, outcome.reply());
    }
}
