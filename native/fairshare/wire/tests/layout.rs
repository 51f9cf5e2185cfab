//! The C client's header says the same as this crate.

use std::collections::HashMap;

use wire::{segment, Op};

const HEADER: &str = include_str!("../../client/src/wire.h");

/// `#define NAME NUMBER` and `NAME = NUMBER,` of the header. Numbers may be hexadecimal, `a << b`, or -1.
fn numbers() -> HashMap<String, i128> {
    let mut found = HashMap::new();
    for line in HEADER.lines() {
        let line = line.split("//").next().unwrap().trim().trim_end_matches(',');
        let pair = match line.strip_prefix("#define ") {
            Some(rest) => rest.split_once(' '),
            None => line.split_once(" = "),
        };
        if let Some((name, value)) = pair {
            if let Some(number) = number(value) {
                found.insert(name.trim().to_owned(), number);
            }
        }
    }
    found
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')');
    if let Some((left, right)) = text.split_once("<<") {
        return Some(number(left)? << number(right)?);
    }
    let digits = text.trim().trim_end_matches(['u', 'l', 'U', 'L']);
    match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[test]
fn sizes_and_places_agree() {
    let c = numbers();
    let expected: [(&str, i128); 24] = [
        ("FS_VERSION", i128::from(wire::VERSION)),
        ("FS_FRAME_MAGIC", i128::from(wire::FRAME_MAGIC)),
        ("FS_FRAME_BYTES", wire::FRAME_BYTES as i128),
        ("FS_TICKET_BYTES", wire::TICKET_BYTES as i128),
        ("FS_WELCOME_BYTES", wire::WELCOME_BYTES as i128),
        ("FS_ATTRIBUTES_BYTES", wire::ATTRIBUTES_BYTES as i128),
        ("FS_STATFS_BYTES", wire::STATFS_BYTES as i128),
        ("FS_MAX_PATH", wire::MAX_PATH as i128),
        ("FS_GRANT_BYTES", wire::GRANT_BYTES as i128),
        ("FS_MOST_SERVERS", wire::MOST_SERVERS as i128),
        ("FS_READING", i128::from(wire::flags::READING)),
        ("FS_WANT_SEGMENT", i128::from(wire::WANT_SEGMENT)),
        ("FS_SEGMENT_MAGIC", i128::from(segment::MAGIC)),
        ("FS_SLOTS", segment::SLOTS as i128),
        ("FS_SLOT_BYTES", segment::SLOT_BYTES as i128),
        ("FS_POSTED_AT", segment::POSTED_AT as i128),
        ("FS_ARMED_AT", segment::ARMED_AT as i128),
        ("FS_SLOTS_AT", segment::SLOTS_AT as i128),
        ("FS_SLOT_STRIDE", segment::SLOT_STRIDE as i128),
        ("FS_REQUEST_AT", segment::REQUEST_AT as i128),
        ("FS_REPLY_AT", segment::REPLY_AT as i128),
        ("FS_DATA_AT", segment::DATA_AT as i128),
        ("FS_CHAINED", i128::from(wire::flags::CHAINED)),
        ("FS_NO_FOLLOW", i128::from(wire::flags::NO_FOLLOW)),
    ];
    for (name, value) in expected {
        assert_eq!(c.get(name), Some(&value), "{name}");
    }
    assert!(HEADER.contains("sizeof(struct fs_request) == 96") && wire::REQUEST_BYTES == 96);
    assert!(HEADER.contains("sizeof(struct fs_reply) == 24") && wire::REPLY_BYTES == 24);
}

#[test]
fn operations_agree() {
    let c = numbers();
    // In the header's order, from `enum fs_op`.
    let mut known = 0;
    for code in 0..1000_u32 {
        let Some(op) = Op::from_code(code) else { continue };
        known += 1;
        // MakeDirectory -> FS_MAKE_DIRECTORY
        let mut name = "FS".to_owned();
        for letter in format!("{op:?}").chars() {
            if letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        assert_eq!(c.get(&name), Some(&i128::from(code)), "{name}");
    }
    assert_eq!(known, 39, "operations of the crate");
}
