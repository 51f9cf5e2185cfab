"""What the way from this node to a storage's server carries: its link's rate, or what loopback gives."""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from pathlib import Path
from threading import Thread
from typing import Any

MIB = 1024**2
#: Asks for the address of an interface (netdevice(7)).
_SIOCGIFADDR = 0x8915


def wire(source: str, seconds: float, sys: Path = Path("/sys/class/net")) -> dict[str, Any] | None:
    """Return the keys of a stage for the link over which `source` (``host:/export``) is reached.

    None where the source names no host, or nobody says what its link carries (a virtual one).
    """
    host = source.rpartition(":")[0].strip("[]") or source.partition("@")[0]
    address = _own_address(host) if host else None
    if address is None:
        return None
    if address.startswith("127."):
        return {"label": "loopback of the node", "bandwidth": loopback(seconds)}
    for _, name in socket.if_nameindex():
        if _address_of(name) == address:
            rate = _rate(sys / name / "speed")
            return {"label": f"link {name} of the node", "bandwidth": rate} if rate else None
    return None


def loopback(seconds: float) -> float:
    """Return bytes per second of one TCP connection from this node to itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = Thread(target=_send, args=(server.getsockname(), seconds))
        sender.start()
        connection, _ = server.accept()
        buffer = bytearray(MIB)
        moved, began = 0, time.perf_counter()
        with connection:
            while got := connection.recv_into(buffer):
                moved += got
        took = time.perf_counter() - began
        sender.join()
    return moved / took


def _send(to: tuple[str, int], seconds: float) -> None:
    end, chunk = time.perf_counter() + seconds, bytes(MIB)
    with socket.create_connection(to) as connection:
        while time.perf_counter() < end:
            connection.sendall(chunk)


def _own_address(host: str) -> str | None:
    """Return this node's address on the way to a host; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            return str(probe.getsockname()[0])
    except (OSError, UnicodeError):
        return None


def _address_of(interface: str) -> str | None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            answer = fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, struct.pack("256s", interface[:15].encode()))
    except OSError:
        return None
    return socket.inet_ntoa(answer[20:24])


def _rate(speed: Path) -> float | None:
    """Return bytes per second of an interface, which says megabits."""
    try:
        megabits = int(speed.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return megabits * 1e6 / 8 if megabits > 0 else None
