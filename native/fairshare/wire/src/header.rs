//! The C client's header, from the definitions of this crate.

use std::fmt::Write as _;

use crate::entry::{Attributes, EntryHead, Statfs, ATTRIBUTES_BYTES, ENTRY_BYTES, STATFS_BYTES};
use crate::frame::{FRAME_BYTES, FRAME_MAGIC};
use crate::grant::{GrantRecord, GRANT_BYTES, MOST_SERVERS};
use crate::hello::{ANSWER, CHALLENGE_BYTES, NONCE_BYTES, PROOF_BYTES, WANT_SEGMENT, WELCOME_BYTES};
use crate::limits::{MAX_PATH, VERSION};
use crate::request::{flags, mask, Op, Reply, Request, REPLY_BYTES, REQUEST_BYTES};
use crate::segment::{self, *};
use crate::ticket::TICKET_BYTES;

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

/// MakeDirectory -> FS_MAKE_DIRECTORY.
fn screaming(name: &str) -> String {
    let mut out = "FS".to_owned();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

type Fields = &'static [(&'static str, (&'static str, usize))];

fn structure(out: &mut String, name: &str, fields: Fields, tail: &str) {
    let _ = writeln!(out, "\nstruct fs_{name} {{");
    for (field, (kind, count)) in fields {
        let many = if *count > 1 {
            format!("[{count}]")
        } else {
            String::new()
        };
        let _ = writeln!(out, "    {kind} {field}{many};");
    }
    let _ = writeln!(out, "{tail}}};");
}

/// The whole header.
pub fn header() -> String {
    let mut out = "// What clients and servers of fairshare say to each other: made from the crate `wire`.\n\
        // All integers little-endian, results below zero are -errno.\n\
        #ifndef FAIRSHARE_WIRE_H\n#define FAIRSHARE_WIRE_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
        .to_owned();
    defines! { out;
        VERSION, FRAME_MAGIC, FRAME_BYTES, CHALLENGE_BYTES, TICKET_BYTES, PROOF_BYTES, NONCE_BYTES, WELCOME_BYTES,
        MOST_SERVERS, MAX_PATH, WANT_SEGMENT, SLOTS, SLOT_BYTES, POSTED_AT, ARMED_AT, SLOTS_AT, SLOT_STRIDE, REQUEST_AT, REPLY_AT, CLIENT_AT, SERVER_AT,
        DATA_AT, flags::NO_FOLLOW, flags::DATA_ONLY, flags::SET, flags::CHAINED, flags::AWAY, flags::READING, mask::MODE, mask::UID,
        mask::GID, mask::ATIME, mask::MTIME, FREE, POSTED, WAITED, DONE,
    }
    let _ = writeln!(out, "#define FS_SEGMENT_MAGIC {}", segment::MAGIC.written());
    let _ = writeln!(out, "#define FS_SEGMENT_BYTES {}", segment::BYTES.written());
    let _ = writeln!(out, "#define FS_ANSWER \"{ANSWER}\"");
    let _ = writeln!(out, "#define FS_AT_POSITION (-1)\n\nenum fs_op {{");
    for (name, code) in Op::ALL {
        let _ = writeln!(out, "    {} = {code},", screaming(name));
    }
    out.push_str("};\n");
    let records: [(&str, Fields, usize, &str); 6] = [
        ("request", Request::FIELDS, REQUEST_BYTES, ""),
        ("reply", Reply::FIELDS, REPLY_BYTES, ""),
        ("attributes", Attributes::FIELDS, ATTRIBUTES_BYTES, ""),
        ("statfs", Statfs::FIELDS, STATFS_BYTES, ""),
        ("grant", GrantRecord::FIELDS, GRANT_BYTES, ""),
        ("entry", EntryHead::FIELDS, ENTRY_BYTES, "    char name[];\n"),
    ];
    for (name, fields, bytes, tail) in records {
        structure(&mut out, name, fields, tail);
        let size = match tail {
            "" => format!("sizeof(struct fs_{name})"),
            _ => format!("offsetof(struct fs_{name}, name)"),
        };
        let _ = writeln!(out, "_Static_assert({size} == {bytes}, \"no gaps\");");
    }
    let _ = writeln!(out, "#define FS_ENTRY_NAME_AT {ENTRY_BYTES}");
    out + "\n#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n#error \"fairshare's messages are little-endian\"\n#endif\n\n#endif\n"
}
