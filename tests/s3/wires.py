"""Connections that go wrong: a way to a real server that is cut, a server with an answer for each time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress


@contextmanager
def listening(serve: Callable[[socket.socket, int], None]) -> Iterator[int]:
    """Call `serve` in a thread for each connection, with its number (from 0); yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def accept() -> None:
            number = 0
            with suppress(OSError):
                while True:
                    taken, _ = door.accept()
                    threading.Thread(target=_served, args=(serve, taken, number), daemon=True).start()
                    number += 1

        threading.Thread(target=accept, daemon=True).start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def _served(serve: Callable[[socket.socket, int], None], taken: socket.socket, number: int) -> None:
    with taken, suppress(OSError):
        serve(taken, number)


@contextmanager
def cut(port: int, after: int) -> Iterator[int]:
    """Yield the port of a way to `port` on which `after` bytes of answers come through, then nothing more."""
    with relay(port, after) as (mine, _):
        yield mine


@contextmanager
def relay(port: int, after: int = 1 << 60) -> Iterator[tuple[int, list[int]]]:
    """Yield the port of a way to `port`, and the bytes of answers that each connection on it has carried."""
    carried = [0] * 1000

    def serve(here: socket.socket, number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as there:
            threading.Thread(target=_pass_on, args=(here, there), daemon=True).start()
            while carried[number] < after and (piece := there.recv(min(after - carried[number], 65536))):
                carried[number] += len(piece)
                here.sendall(piece)
            here.shutdown(socket.SHUT_RDWR)

    with listening(serve) as mine:
        yield mine, carried


@contextmanager
def together(port: int, count: int, begins: bytes) -> Iterator[tuple[int, list[int]]]:
    """Yield the port of a way to `port`, and what its connections had waited for when they went on.

    A connection whose first request begins so waits until `count` such requests are there: their number, or
    what there was of them after a while, is what is yielded.
    """
    there_are, came, waited = threading.Condition(), [0], list[int]()

    def serve(here: socket.socket, number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as there:
            first = here.recv(65536)
            if first.startswith(begins):
                with there_are:
                    came[0] += 1
                    there_are.notify_all()
                    there_are.wait_for(lambda: came[0] >= count, timeout=10)
                    waited.append(came[0])
            there.sendall(first)
            threading.Thread(target=_pass_on, args=(here, there), daemon=True).start()
            _pass_on(there, here)
            here.shutdown(socket.SHUT_RDWR)

    with listening(serve) as mine:
        yield mine, waited


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)


@contextmanager
def answering(answers: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the port of a server that gives these answers, a connection each, and the requests it got."""
    asked: list[bytes] = []

    def serve(here: socket.socket, number: int) -> None:
        request = b""
        while b"\r\n\r\n" not in request and (piece := here.recv(65536)):
            request += piece
        asked.append(request)
        here.sendall(answers[min(number, len(answers) - 1)])

    with listening(serve) as port:
        yield port, asked
