//! The Python module, from the definitions of this crate.

use std::fmt::Write as _;

use crate::entry::{Attributes, ATTRIBUTES_BYTES};
use crate::frame::{FrameHeader, FRAME_BYTES, FRAME_MAGIC};
use crate::header::screaming;
use crate::hello::{
    HelloHead, Welcome, ANSWER, HELLO_BYTES, NONCE_BYTES, NOTICE, PROOF_BYTES, WANT_SEGMENT, WELCOME_BYTES,
};
use crate::limits::VERSION;
use crate::record::{Fields, Kind};
use crate::request::{Op, Reply, Request, REPLY_BYTES, REQUEST_BYTES};
use crate::segment;
use crate::ticket::{TicketRecord, NAME_BYTES, TICKET_BYTES, USER};

/// A record as Python's `struct` has it; what its fields leave of its bytes is skipped.
fn format(fields: Fields, bytes: usize) -> String {
    let mut out = "<".to_owned();
    let mut held = 0;
    for (_, Kind { python, count, .. }) in fields {
        let size = match python {
            'B' => 1,
            'H' => 2,
            'I' => 4,
            _ => 8,
        };
        held += size * count;
        let _ = match (python, count) {
            (_, 1) => write!(out, "{python}"),
            ('B', _) => write!(out, "{count}s"),
            _ => write!(out, "{count}{python}"),
        };
    }
    if bytes > held {
        let _ = write!(out, "{}x", bytes - held);
    }
    out
}

/// The whole module.
pub fn module() -> String {
    let mut out = "\"\"\"What clients and servers of fairshare say to each other: made from native/fairshare/wire, by\n\
        ``make -C native/fairshare python``.\"\"\"\n\nfrom enum import IntEnum\nfrom struct import Struct\n\n"
        .to_owned();
    for (name, number) in [
        ("VERSION", VERSION as usize),
        ("WANT_SEGMENT", WANT_SEGMENT as usize),
        ("NOTICE", NOTICE as usize),
        ("MAGIC", FRAME_MAGIC as usize),
        ("PROOF_BYTES", PROOF_BYTES),
        ("NONCE_BYTES", NONCE_BYTES),
        ("JOB_NAME_BYTES", NAME_BYTES),
        ("SIGNED_BY_USER", USER as usize),
        ("SEGMENT_BYTES", segment::BYTES),
    ] {
        let _ = writeln!(out, "{name} = {number}");
    }
    let _ = writeln!(out, "ANSWER = b\"{ANSWER}\"\n");
    let records = [
        ("FRAME", FrameHeader::FIELDS, FRAME_BYTES),
        ("HELLO", HelloHead::FIELDS, HELLO_BYTES),
        ("WELCOME", Welcome::FIELDS, WELCOME_BYTES),
        ("TICKET", TicketRecord::FIELDS, TICKET_BYTES),
        ("REQUEST", Request::FIELDS, REQUEST_BYTES),
        ("REPLY", Reply::FIELDS, REPLY_BYTES),
        ("ATTRIBUTES", Attributes::FIELDS, ATTRIBUTES_BYTES),
    ];
    for (name, fields, bytes) in records {
        let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        let _ = writeln!(
            out,
            "#: {}\n{name} = Struct(\"{}\")",
            names.join(", "),
            format(fields, bytes)
        );
    }
    out += "\n\nclass Op(IntEnum):\n    \"\"\"What is asked for.\"\"\"\n\n";
    for (name, code) in Op::ALL {
        let _ = writeln!(out, "    {} = {code}", screaming(name));
    }
    out
}
