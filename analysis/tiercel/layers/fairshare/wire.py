"""What clients and servers of fairshare say to each other: made from native/fairshare/wire, by
``make -C native/fairshare python``."""

from enum import IntEnum
from struct import Struct

VERSION = 4
WANT_SEGMENT = 1
NOTICE = 18446744073709551615
MAGIC = 827478854
PROOF_BYTES = 32
NONCE_BYTES = 16
JOB_NAME_BYTES = 48
SIGNED_BY_USER = 2
SEGMENT_BYTES = 2105344
ANSWER = b"fairshare server"

#: magic, length, tag
FRAME = Struct("<IIQ")
#: version, wants, voucher
HELLO = Struct("<IIQ")
#: session, server, slots, slot_bytes, uid, turn, secret
WELCOME = Struct("<QQIIIIQ")
#: uid, gid, user, group, size, priority, expires, nonce, name_len, by, name
TICKET = Struct("<IIIIIIQQII48s32x")
#: op, flags, handle, handle2, offset, size, path_len, path2_len, mode, mask, uid, gid, times
REQUEST = Struct("<IIQQqQIIIIII4q")
#: result, value, data_len
REPLY = Struct("<qQI4x")
#: ino, size, blocks, nlink, mode, uid, gid, blksize, rdev, times
ATTRIBUTES = Struct("<QQQQIIIIQ6q")


class Op(IntEnum):
    """What is asked for."""

    PING = 1
    STATUS = 2
    TICKET = 3
    RELOAD = 4
    SEND_AWAY = 5
    VOUCH = 6
    JOIN = 8
    DROPPED = 7
    OPEN = 10
    CLOSE = 11
    READ = 13
    WRITE = 14
    SEEK = 15
    TRUNCATE = 16
    ALLOCATE = 17
    FSYNC = 18
    GET_ATTRIBUTES = 20
    SET_ATTRIBUTES = 21
    ACCESS = 22
    STATFS = 23
    READ_DIRECTORY = 30
    MAKE_DIRECTORY = 31
    UNLINK = 32
    RENAME = 33
    LINK = 34
    SYMLINK = 35
    READLINK = 36
    MAKE_NODE = 38
    GET_XATTR = 40
    SET_XATTR = 41
    LIST_XATTR = 42
    REMOVE_XATTR = 43
    LOCK = 50
