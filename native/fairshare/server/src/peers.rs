//! The exchange of job tables between servers, every lambda (ThemisIO, section 3.1): what makes shares
//! fair over all servers, not on each of them alone.
//!
//! A table is one datagram, sent to all peers, signed with the key that the servers share and numbered by
//! time. One that is lost is no loss: the next one comes a lambda later. A server that is silent for some
//! lambdas no longer counts.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use policy::global::{local_shares, JobUse, ServerTable};
use policy::{Job, Usage};
use wire::{TableEntry, TableHead, TABLE_ENTRY_BYTES, TABLE_HEAD_BYTES, TABLE_MAGIC};

use crate::identity::{keyed, proven};
use crate::server::Server;

const MAC: usize = 32;
/// Jobs in one datagram; beyond them the largest users are told.
const MOST_JOBS: usize = 1500;
/// Intervals without a table after which a peer no longer counts.
const SILENT: u32 = 5;
/// How fast the memory of a server's best interval fades.
const FADING: f64 = 0.98;

pub struct Exchange {
    pub socket: UdpSocket,
    pub peers: Vec<SocketAddr>,
    pub key: Vec<u8>,
    pub lambda: Duration,
}

struct Heard {
    number: u64,
    when: Instant,
    table: ServerTable,
}

/// Start exchanging tables; ends with the server.
pub fn start(server: &Arc<Server>, exchange: Exchange) {
    let server = Arc::clone(server);
    thread::Builder::new()
        .name("exchange".into())
        .spawn(move || run(&server, &exchange))
        .expect("a thread can be started");
}

fn run(server: &Server, exchange: &Exchange) {
    let mut heard: HashMap<u64, Heard> = HashMap::new();
    let mut before: HashMap<u64, u64> = HashMap::new();
    let mut best = 1.0_f64;
    let mut next = Instant::now();
    while !server.stopping.load(Ordering::SeqCst) {
        next += exchange.lambda;
        listen_until(exchange, next, &mut heard);
        let usage = server.queue.usage();
        let jobs: Vec<JobUse> = usage.iter().map(|job| used(job, &before)).collect();
        before = usage.iter().map(|job| (job.job.id, job.served)).collect();
        best = (best * FADING).max(jobs.iter().map(|job| job.served as f64).sum());
        let own = ServerTable {
            server: server.id,
            capacity: best,
            jobs,
        };
        let message = encode(&own, now(), &exchange.key);
        for peer in &exchange.peers {
            let _ = exchange.socket.send_to(&message, peer);
        }
        heard.retain(|id, other| *id != own.server && other.when.elapsed() < exchange.lambda * SILENT);
        let mut tables = vec![own];
        tables.extend(heard.values().map(|other| other.table.clone()));
        if tables.len() > 1 {
            let shares = local_shares(&server.queue.policy(), &tables);
            server.queue.set_local_shares(shares.first());
        } else {
            server.queue.set_local_shares(None);
        }
    }
}

fn used(usage: &Usage, before: &HashMap<u64, u64>) -> JobUse {
    let earlier = before.get(&usage.job.id).copied().unwrap_or(0);
    JobUse {
        job: usage.job,
        served: usage.served.saturating_sub(earlier),
        queued: usage.queued,
    }
}

fn listen_until(exchange: &Exchange, until: Instant, heard: &mut HashMap<u64, Heard>) {
    let mut buffer = vec![0; 65536];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let _ = exchange
            .socket
            .set_read_timeout(Some(left.max(Duration::from_micros(100))));
        let Ok((length, _)) = exchange.socket.recv_from(&mut buffer) else {
            continue;
        };
        let Some((number, table)) = decode(&buffer[..length], &exchange.key) else {
            continue;
        };
        // Older than what we have: overtaken, or sent again by somebody who listened.
        if heard.get(&table.server).is_none_or(|known| known.number < number) {
            heard.insert(
                table.server,
                Heard {
                    number,
                    when: Instant::now(),
                    table,
                },
            );
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

/// A table as it is sent: the busiest jobs, signed.
fn encode(table: &ServerTable, number: u64, key: &[u8]) -> Vec<u8> {
    let mut jobs: Vec<&JobUse> = table
        .jobs
        .iter()
        .filter(|job| job.served + job.queued > 0)
        .collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.served + job.queued));
    jobs.truncate(MOST_JOBS);
    let head = TableHead {
        magic: TABLE_MAGIC,
        count: jobs.len() as u32,
        number,
        server: table.server,
        capacity: table.capacity.to_bits(),
    };
    let mut bytes = head.to_bytes().to_vec();
    for JobUse { job, served, queued } in jobs {
        let entry = TableEntry {
            job: job.id,
            user: job.user,
            group: job.group,
            size: job.size,
            priority: job.priority,
            served: *served,
            queued: *queued,
        };
        bytes.extend_from_slice(&entry.to_bytes());
    }
    let mac = keyed(key, &bytes);
    bytes.extend_from_slice(&mac);
    bytes
}

fn decode(bytes: &[u8], key: &[u8]) -> Option<(u64, ServerTable)> {
    let (body, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC)?)?;
    let (head, entries) = body.split_first_chunk::<TABLE_HEAD_BYTES>()?;
    let head = TableHead::take(head);
    let capacity = f64::from_bits(head.capacity);
    let whole = (head.count as usize).checked_mul(TABLE_ENTRY_BYTES) == Some(entries.len());
    if head.magic != TABLE_MAGIC
        || !whole
        || !proven(key, body, mac)
        || !capacity.is_finite()
        || capacity < 0.0
    {
        return None;
    }
    let used = |entry: &[u8]| {
        let entry = TableEntry::take(entry.try_into().expect("a chunk"));
        JobUse {
            job: Job {
                id: entry.job,
                user: entry.user,
                group: entry.group,
                size: entry.size,
                priority: entry.priority,
            },
            served: entry.served,
            queued: entry.queued,
        }
    };
    let table = ServerTable {
        server: head.server,
        capacity,
        jobs: entries.chunks_exact(TABLE_ENTRY_BYTES).map(used).collect(),
    };
    Some((head.number, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ServerTable {
        let job = Job::new(7).user(1).group(2).size(16).priority(3);
        ServerTable {
            server: 5,
            capacity: 2.5,
            jobs: vec![JobUse {
                job,
                served: 10,
                queued: 20,
            }],
        }
    }

    #[test]
    fn a_table_survives_the_wire() {
        assert_eq!(decode(&encode(&table(), 9, b"key"), b"key"), Some((9, table())));
    }

    #[test]
    fn tables_of_strangers_and_cut_ones_are_refused() {
        let good = encode(&table(), 9, b"key");
        assert!(decode(&good, b"other").is_none());
        for length in 0..good.len() {
            assert!(decode(&good[..length], b"key").is_none());
        }
        let mut changed = good.clone();
        changed[TABLE_HEAD_BYTES + 16] ^= 1; // the size
        assert!(decode(&changed, b"key").is_none());
    }
}
