//! Everything that reads bytes of a stranger, on random and on slightly wrong messages: nothing panics, nothing
//! that was refused for form gets through, and what was understood says the same again when it is written.
//!
//! `FAIRSHARE_FUZZ=10000000` makes more of them; the seed is in the message of a failure.

mod random;

use random::{rounds, Random};
use wire::{
    entries, push_entry, Attributes, FrameHeader, Hello, Op, Reply, Request, Statfs, Ticket, NONCE_BYTES,
};
use wire::{FRAME_BYTES, MAX_BODY, MAX_PATH, PROOF_BYTES};
use wire::{REPLY_BYTES, REQUEST_BYTES, TICKET_BYTES};

/// Calls `check` with message after message, made by `make` and spoilt; every fourth is noise.
fn attack(length: usize, mut make: impl FnMut(&mut Random) -> Vec<u8>, check: impl Fn(&[u8])) {
    for seed in 1..=rounds(100_000) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = if seed % 4 == 0 {
            vec![0; length]
        } else {
            make(&mut random)
        };
        match seed % 4 {
            0 => random.fill(&mut bytes),
            _ => random.spoil(&mut bytes),
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&bytes)));
        assert!(outcome.is_ok(), "seed {seed}: {bytes:?}");
    }
}

fn ticket(random: &mut Random) -> Ticket {
    Ticket {
        uid: random.number() as u32,
        gid: random.number() as u32,
        user: random.number() as u32,
        group: random.number() as u32,
        size: random.number() as u32,
        priority: random.number() as u32,
        expires: random.number(),
        nonce: random.next(),
        by: 1 + random.below(2) as u32,
        job: "jöb".repeat(random.below(16)),
    }
}

#[test]
fn frames() {
    let make = |random: &mut Random| {
        let (length, tag) = (random.number() as u32, random.next());
        FrameHeader::new(length as usize, tag).to_bytes().to_vec()
    };
    attack(FRAME_BYTES, make, |bytes| {
        let bytes: &[u8; FRAME_BYTES] = bytes.try_into().unwrap();
        if let Ok(header) = FrameHeader::parse(bytes) {
            assert!(header.length as usize <= MAX_BODY);
            assert_eq!(&header.to_bytes(), bytes);
        }
    });
}

#[test]
fn requests_and_replies() {
    let make = |random: &mut Random| {
        let op = Op::from_code(random.below(70) as u32).unwrap_or_default();
        let mut request = Request::new(op);
        request.path_len = random.number() as u32;
        request.path2_len = random.number() as u32;
        request.size = random.number();
        request.to_bytes().to_vec()
    };
    attack(REQUEST_BYTES, make, |bytes| {
        let bytes: &[u8; REQUEST_BYTES] = bytes.try_into().unwrap();
        if let Ok(request) = Request::parse(bytes) {
            assert!(request.paths_len() <= 2 * MAX_PATH);
            assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
        }
        let reply = Reply::parse(bytes[..REPLY_BYTES].try_into().unwrap());
        assert_eq!(Reply::parse(&reply.to_bytes()), reply);
    });
}

#[test]
fn tickets_and_hellos() {
    let make = |random: &mut Random| {
        let ticket = (random.below(3) > 0).then(|| (ticket(random), [7; PROOF_BYTES]));
        let (wants, voucher) = (random.number() as u32, random.number());
        let hello = Hello {
            wants,
            voucher,
            ticket,
            nonce: [0; NONCE_BYTES],
        };
        let mut bytes = hello.to_bytes();
        if random.below(4) == 0 {
            let length = random.below(bytes.len() + 64);
            bytes.resize(length, 0xff);
        }
        bytes
    };
    attack(256, make, |bytes| {
        if let Ok(hello) = Hello::parse(bytes) {
            assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello.clone()));
            if let Some((ticket, _)) = hello.ticket {
                assert!(ticket.size > 0 && ticket.priority > 0 && !ticket.job.is_empty());
                assert!(!ticket.job.contains(char::is_control));
            }
        }
        if let Some(bytes) = bytes.first_chunk::<TICKET_BYTES>() {
            if let Ok(ticket) = Ticket::parse(bytes) {
                assert_eq!(Ticket::parse(&ticket.to_bytes()), Ok(ticket));
            }
        }
    });
}

#[test]
fn entries_and_attributes() {
    let make = |random: &mut Random| {
        let mut out = Vec::new();
        let name = [b'n'; 300];
        for _ in 0..random.below(12) {
            push_entry(
                &mut out,
                2048,
                random.next(),
                random.next(),
                8,
                &name[..random.below(300)],
            );
        }
        out.truncate(
            random
                .below(out.len() + 1)
                .max(out.len().saturating_sub(random.below(32))),
        );
        out
    };
    attack(512, make, |bytes| {
        let mut held = 0;
        for entry in entries(bytes) {
            held += 20 + entry.name.len();
            assert!(held <= bytes.len(), "names beyond what came");
        }
        let attributes = Attributes::parse(bytes);
        assert_eq!(Attributes::parse(&attributes.to_bytes()), attributes);
        let statfs = Statfs::parse(bytes);
        assert_eq!(Statfs::parse(&statfs.to_bytes()), statfs);
    });
}
