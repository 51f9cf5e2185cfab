//! The bytes on the wire, worked out by hand, and the C client's header, which is made from the same lists.

use wire::{header::header, Attributes, Op, Reply, Request};

/// Where each field of a request lies: a number in it, alone, shows there and nowhere else.
#[test]
fn fields_lie_where_they_always_did() {
    let mut request = Request::new(Op::Write); // 14
    request.flags = 1;
    request.handle = 2;
    request.handle2 = 3;
    request.offset = -1;
    request.size = 0x0102_0304_0506_0708;
    (request.path_len, request.path2_len) = (4, 5);
    (request.mode, request.mask, request.uid, request.gid) = (6, 7, 8, 9);
    request.times = [10, 11, 12, -13];
    let mut expected = Vec::new();
    expected.extend([
        14, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    ]);
    expected.extend([0xff; 8]);
    expected.extend([8, 7, 6, 5, 4, 3, 2, 1]);
    for word in [4_u32, 5, 6, 7, 8, 9] {
        expected.extend(word.to_le_bytes());
    }
    for time in [10_i64, 11, 12, -13] {
        expected.extend(time.to_le_bytes());
    }
    assert_eq!(request.to_bytes().to_vec(), expected);

    let reply = Reply {
        result: -2,
        value: 3,
        data_len: 4,
    };
    assert_eq!(
        reply.to_bytes()[..9],
        [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3]
    );
    assert_eq!(
        reply.to_bytes()[16..],
        [4, 0, 0, 0, 0, 0, 0, 0],
        "24 bytes, the last four of them nobody's"
    );

    let attributes = Attributes {
        gid: 5,
        times: [0, 0, 0, 0, 0, 9],
        ..Attributes::default()
    };
    let bytes = attributes.to_bytes();
    assert_eq!((bytes[40], bytes[96]), (5, 9)); // 4 * 8 + 2 * 4; 4 * 8 + 4 * 4 + 8 + 5 * 8
}

#[test]
fn the_header_has_what_the_crate_has() {
    let header = header();
    for line in [
        "#define FS_VERSION 4u",
        "#define FS_SLOT_BYTES 131072",
        "    FS_PING = 1,",
        "    FS_SET_ATTRIBUTES = 21,",
        "    FS_LOCK = 50,",
        "    int64_t times[4];",
        "    unsigned char socket[112];",
        "_Static_assert(sizeof(struct fs_request) == 96, \"no gaps\");",
    ] {
        assert!(header.lines().any(|one| one == line), "{line}");
    }
    let operations = (0..1000).filter_map(Op::from_code).count();
    assert_eq!(header.matches("    FS_").count(), operations);
}

/// It lies in the Python package, which is used without Rust, too.
#[test]
fn the_python_module_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../analysis/tiercel/layers/fairshare/wire.py"
    );
    let there = std::fs::read_to_string(path).unwrap();
    assert_eq!(there, wire::python::module(), "make -C native/fairshare python");
}
