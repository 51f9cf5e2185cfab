//! Carrying a request out, and sending its answer where it came from.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wire::{segment, Op, Request, REQUEST_BYTES};

use super::{Done, Server};
use crate::area::Area;
use crate::caches;
use crate::call::Call;
use crate::errno::APART;
use crate::ops::carry_out;
use crate::outcome::Outcome;
use crate::patience::is_large;
use crate::queue::{Pending, Place, Time};
use crate::seat;
use crate::segment::Segment;

/// Smallest room for the data of a reply in a frame.
const REPLY_ROOM: usize = 8192;

fn room_for(request: &Request) -> usize {
    (request.size as usize).clamp(REPLY_ROOM, 1 << 20)
}

/// Bytes that a request in a frame, with `payload` bytes behind it, takes until it is answered.
pub(super) fn weight(request: &Request, payload: usize) -> usize {
    REQUEST_BYTES + payload.max(room_for(request))
}

/// An answer that waits until all mounts have dropped the file.
struct Held {
    left: AtomicUsize,
    answer: Mutex<Option<(Pending, Outcome)>>,
}

impl Server {
    /// Not where the client copies at the same time. Where several want to be served there is no such place.
    fn sit_apart(&self, request: &Request, segment: &Segment, slot: usize) {
        if !is_large(request) {
            return;
        }
        if let Some(processor) = segment.shared_processor(slot).filter(|_| self.serves_one()) {
            seat::leave(processor);
        }
    }

    /// Carry out a request and answer it, or leave it to where it keeps nobody waiting. What the time says that it took.
    pub(crate) fn serve(&self, pending: Pending) -> Time {
        self.carry(pending, false)
    }

    /// The same for one that was left to us.
    pub(crate) fn serve_alone(&self, pending: Pending) {
        let session = Arc::clone(&pending.session);
        let write = pending.request.op == Op::Write;
        if write {
            session.writes.taken();
        }
        self.carry(pending, true);
        if write {
            session.writes.ended();
        }
    }

    fn carry(&self, mut pending: Pending, alone: bool) -> Time {
        let session = Arc::clone(&pending.session);
        let request = pending.request;
        let room = room_for(&request);
        let outcome = {
            // SAFETY (all three): the memory lives as long as the session or the place, which we hold, and
            // is not touched otherwise while the area lives.
            let area = match &mut pending.place {
                Place::Slot { slot, .. } => {
                    let Some(shared) = &session.shared else {
                        return Time::Nothing;
                    };
                    if !alone {
                        self.sit_apart(&request, &shared.segment, *slot);
                    }
                    let data = shared.segment.data(*slot);
                    unsafe { Area::new(data, segment::SLOT_BYTES, segment::SLOT_BYTES) }
                }
                Place::Frame { body, payload, .. } => {
                    let room = room.max(*payload);
                    body.resize(REQUEST_BYTES + room, 0);
                    unsafe { Area::new(body.as_mut_ptr().add(REQUEST_BYTES), room, *payload) }
                }
                Place::Inside { payload, .. } => {
                    let length = payload.len();
                    payload.resize(length.max(room), 0);
                    unsafe { Area::new(payload.as_mut_ptr(), length.max(room), length) }
                }
            };
            let call = Call {
                server: self,
                session: &session,
                request: &request,
                area: &area,
                alone,
            };
            // A mistake in one operation must not take the server along.
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| carry_out(&call)))
                .unwrap_or_else(|_| Outcome::of(-i64::from(libc::EIO)))
        };
        if outcome.result == -i64::from(APART) {
            let Some(apart) = self.apart.get() else {
                return self.carry(pending, true);
            };
            let alone = move |server: &Server| {
                let entry = Arc::clone(&pending.session.entry);
                server.serve_alone(pending);
                Some(entry)
            };
            apart(session.creds.uid, Box::new(alone));
            return Time::Nothing;
        }
        let time = match (request.op, outcome.result) {
            (Op::Read | Op::Write, moved) if !outcome.waited => {
                // What failed says nothing of the storage.
                u64::try_from(moved).map_or(Time::Nothing, Time::Moved)
            }
            _ => Time::IsCost,
        };
        match outcome.changed {
            Some(ino) => self.answer_changed(ino, pending, outcome),
            None => self.answer(pending, outcome),
        }
        time
    }

    pub(crate) fn answer(&self, pending: Pending, outcome: Outcome) {
        match pending.place {
            Place::Slot { slot } => {
                if let Some(shared) = &pending.session.shared {
                    self.slot_done(shared, slot, &outcome);
                }
            }
            Place::Inside { payload, then, .. } => then(&outcome, &payload[..outcome.data]),
            Place::Frame {
                connection,
                tag,
                body,
                payload,
            } => {
                let reply = outcome.reply().to_bytes();
                let data = &body[REQUEST_BYTES..REQUEST_BYTES + outcome.data];
                let kept = connection.send(tag, &[&reply, data], vec![]);
                if connection.end(weight(&pending.request, payload)) || kept {
                    self.watch(&connection, kept);
                }
            }
        }
    }
}

impl Server {
    /// Answer when no mount but the one that asks has anything of a changed file.
    pub(crate) fn answer_changed(&self, ino: u64, pending: Pending, outcome: Outcome) {
        let session = Arc::clone(&pending.session);
        // What was appended lies elsewhere than the kernel takes it to. It holds the page until it has its answer.
        let elsewhere = outcome.elsewhere;
        let mounts = self.caches.take(ino, session.cache.filter(|_| !elsewhere));
        let by = session.cache;
        let (first, later) = self.caches.hold(ino, by, mounts);
        if first.is_empty() {
            self.answer(pending, outcome);
        } else {
            let held = Arc::new(Held {
                left: AtomicUsize::new(first.len()),
                answer: Mutex::new(Some((pending, outcome))),
            });
            for mount in first {
                let held = Arc::clone(&held);
                let done = move |server: &Server| {
                    if held.left.fetch_sub(1, Ordering::SeqCst) > 1 {
                        return;
                    }
                    let answer = held.answer.lock().expect("no panics under this lock").take();
                    server.caches.answered(ino, by);
                    if let Some((pending, outcome)) = answer {
                        server.answer(pending, outcome);
                    }
                };
                self.tell(mount, ino, session.creds.uid, Box::new(done));
            }
        }
        for mount in later {
            self.tell(mount, ino, session.creds.uid, Box::new(|_| ()));
        }
    }

    /// Tell a mount to drop a file.
    fn tell(&self, mount: u64, ino: u64, uid: u32, done: Done) {
        if mount == caches::OWN {
            return match self.own_mount.get() {
                Some(forget) => forget(ino, uid, done),
                None => done(self),
            };
        }
        let number = self.caches.tell(mount, done);
        let message = [ino.to_le_bytes(), number.to_le_bytes()].concat();
        if !self.send_notice(mount, &message) {
            if let Some(done) = self.caches.dropped(number, mount) {
                done(self);
            }
        }
    }
}
