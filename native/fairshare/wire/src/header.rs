//! The C client's header, from the definitions of this crate.

use std::fmt::Write as _;

use crate::frame::{FrameHeader, FRAME_BYTES, FRAME_MAGIC};
use crate::hello::{HelloHead, Welcome, CHALLENGE_BYTES, HELLO_BYTES, NOTICE, WANT_SEGMENT, WELCOME_BYTES};
use crate::limits::VERSION;
use crate::record::{Fields, Kind};
use crate::request::{flags, Op, Reply, Request, REPLY_BYTES, REQUEST_BYTES};
use crate::segment::{self, *};
use crate::vouched::{Vouched, IOCTL, VOUCHED_BYTES};

/// How a number is written in C, so that it has the type that it has here.
trait Written {
    fn written(self) -> String;
}

impl Written for usize {
    fn written(self) -> String {
        self.to_string()
    }
}

impl Written for u32 {
    fn written(self) -> String {
        format!("{self}u")
    }
}

impl Written for u64 {
    fn written(self) -> String {
        format!("{self}ull")
    }
}

/// `#define`s of constants, by their names here.
macro_rules! defines {
    ($out:ident; $($($path:ident)::+,)*) => {
        $({
            let name = [$(stringify!($path)),+].last().copied().unwrap_or_default();
            let _ = writeln!($out, "#define FS_{name} {}", $($path)::+.written());
        })*
    };
}

/// MakeDirectory -> MAKE_DIRECTORY.
pub(crate) fn screaming(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

fn structure(out: &mut String, name: &str, fields: Fields) {
    let _ = writeln!(out, "\nstruct fs_{name} {{");
    for (field, Kind { c, count, .. }) in fields {
        let many = if *count > 1 {
            format!("[{count}]")
        } else {
            String::new()
        };
        let _ = writeln!(out, "    {c} {field}{many};");
    }
    out.push_str("};\n");
}

/// The whole header.
pub fn header() -> String {
    let mut out = "// What clients and servers of fairshare say to each other: made from the crate `wire`.\n\
        // All integers little-endian, results below zero are -errno.\n\
        #ifndef FAIRSHARE_WIRE_H\n#define FAIRSHARE_WIRE_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
        .to_owned();
    defines! { out;
        VERSION, FRAME_MAGIC, CHALLENGE_BYTES, IOCTL, NOTICE, WANT_SEGMENT, SLOTS, SLOT_BYTES, POSTED_AT, ARMED_AT, SLOTS_AT,
        SLOT_STRIDE, REQUEST_AT, REPLY_AT, CLIENT_AT, SERVER_AT, DATA_AT, flags::CHAINED, flags::AWAY, POSTED, WAITED,
        DONE,
    }
    let _ = writeln!(out, "#define FS_SEGMENT_BYTES {}", segment::BYTES.written());
    out.push_str("\nenum fs_op {\n");
    for (name, code) in Op::ALL {
        let _ = writeln!(out, "    FS_{} = {code},", screaming(name));
    }
    out.push_str("};\n");
    let records: [(&str, Fields, usize); 6] = [
        ("frame", FrameHeader::FIELDS, FRAME_BYTES),
        ("hello", HelloHead::FIELDS, HELLO_BYTES),
        ("welcome", Welcome::FIELDS, WELCOME_BYTES),
        ("request", Request::FIELDS, REQUEST_BYTES),
        ("reply", Reply::FIELDS, REPLY_BYTES),
        ("vouched", Vouched::FIELDS, VOUCHED_BYTES),
    ];
    for (name, fields, bytes) in records {
        structure(&mut out, name, fields);
        let _ = writeln!(
            out,
            "_Static_assert(sizeof(struct fs_{name}) == {bytes}, \"no gaps\");"
        );
    }
    out + "\n#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n#error \"fairshare's messages are little-endian\"\n#endif\n\n#endif\n"
}
