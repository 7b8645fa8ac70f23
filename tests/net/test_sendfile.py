"""Slices on their way to a socket pair: the states of the sender, and what the loop watches in each."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.net.descriptors import Descriptors
from barnabas.net.sendfile import WRITE_LIMIT, SliceSender
from tests.coordinator.virtual_loop import VirtualLoop
from tests.net.scripted_dispatcher import BytesSlice, FileSlice


class Transport:
    """A transport that says how many bytes it holds."""

    def __init__(self) -> None:
        self.unsent = 0
        self.high = WRITE_LIMIT

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high


class Loop:
    """A loop that only keeps which descriptors it watches."""

    def __init__(self) -> None:
        self.writers: dict[int, Callable[[], None]] = {}

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        assert fd not in self.writers, "watched twice"
        self.writers[fd] = callback

    def remove_writer(self, fd: int) -> None:
        del self.writers[fd]


def taken() -> Descriptors:
    descriptors = Descriptors(1)
    assert descriptors.take()
    return descriptors


class Sending:
    """A sender over one end of a socket pair; `received` is what the other end has read."""

    def __init__(self) -> None:
        self.transport, self.loop = Transport(), Loop()
        ours, self._theirs = socket.socketpair()
        ours.setblocking(False)
        self._theirs.setblocking(False)
        self.received = b""
        self.sender = SliceSender(self.transport, ours, self.loop, lambda: None, taken())  # type: ignore[arg-type]

    def read(self) -> None:
        try:
            while data := self._theirs.recv(1 << 20):
                self.received += data
        except BlockingIOError:
            pass

    def close(self) -> None:
        self.sender.close()
        self._theirs.close()


@pytest.fixture
def sending() -> Iterator[Sending]:
    sending = Sending()
    yield sending
    sending.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    """A log file of two megabytes: its descriptor and its bytes."""
    data = os.urandom(2 << 20)
    (tmp_path / "log").write_bytes(data)
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    yield fd, data
    os.close(fd)


def test_what_fits_into_the_socket_leaves_at_once(sending: Sending, log: tuple[int, bytes]) -> None:
    fd, data = log
    output: list[Any] = [bytearray(b"head:"), FileSlice(fd, 7, 100), bytearray(b"tail"), FileSlice(fd, 0, 0)]
    assert sending.sender.send(output)
    assert repr(sending.sender) == "<SliceSender idle parts=0>"
    sending.read()
    assert sending.received == b"head:" + data[7:107] + b"tail"
    assert not sending.loop.writers


@pytest.mark.parametrize("part", ["slice", "bytes", "slice without a file"])
def test_a_full_socket_is_watched_until_the_rest_has_left(sending: Sending, log: tuple[int, bytes], part: str) -> None:
    fd, data = log
    large: Any = {"slice": FileSlice(fd, 0, len(data)), "bytes": bytearray(data)}.get(part) or BytesSlice(data)
    assert not sending.sender.send([bytearray(b"head:"), large])
    assert repr(sending.sender) == "<SliceSender full parts=1>"
    assert len(sending.loop.writers) == 1
    assert not sending.sender.send([bytearray(b"next")]), "a response behind it waits"
    while not sending.sender.proceed():
        assert len(sending.loop.writers) == 1
        sending.read()
    assert not sending.loop.writers
    sending.read()
    assert sending.received == b"head:" + data + b"next"


def test_what_the_transport_holds_leaves_first(sending: Sending, log: tuple[int, bytes]) -> None:
    fd, data = log
    sending.transport.unsent = 1
    assert not sending.sender.send([FileSlice(fd, 0, 100)])
    assert sending.transport.high == 0, "the transport reports when it is empty"
    sending.read()
    assert sending.received == b""
    sending.transport.unsent = 0
    assert sending.sender.proceed()
    assert sending.transport.high == WRITE_LIMIT
    sending.read()
    assert sending.received == data[:100]


@pytest.mark.parametrize("given", [-1, 50_000])
def test_the_socket_s_buffer_has_the_given_size(given: int) -> None:
    class OverSocket(Transport):
        def get_extra_info(self, name: str) -> Any:
            return ours if name == "socket" else None

    ours, theirs = socket.socketpair()
    own = ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
    sender = SliceSender.over(OverSocket(), Loop(), lambda: None, given, Descriptors())  # type: ignore[arg-type]
    assert sender is not None
    expected = own if given < 0 else theirs.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == expected
    assert own != theirs.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), "the sizes can be told apart"
    for end in (sender, ours, theirs):
        end.close()


def test_without_a_descriptor_the_sender_looks_at_its_socket_again_and_again(log: tuple[int, bytes]) -> None:
    """The loop watches only a duplicate of a transport's socket, and there is none."""

    class OverSocket(Transport):
        def get_extra_info(self, name: str) -> Any:
            return ours if name == "socket" else None

    fd, data = log
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop, descriptors, received = VirtualLoop(), Descriptors(0), bytearray()
    sender = SliceSender.over(OverSocket(), loop, lambda: sender.proceed(), -1, descriptors)  # type: ignore[arg-type]
    assert sender is not None
    assert not sender.send([FileSlice(fd, 0, len(data))])
    loop.advance(1000)
    while len(received) < len(data):
        try:
            received += theirs.recv(1 << 20)
        except BlockingIOError:
            loop.advance(50)
    assert received == data
    assert repr(sender) == "<SliceSender idle parts=0>"
    assert not sender.send([FileSlice(fd, 0, len(data))])
    sender.close()
    loop.advance(1000)
    assert ours.fileno() >= 0, "the transport closes its socket itself"
    ours.close()
    theirs.close()
    assert descriptors.used == 0


def test_a_duplicate_counts_as_a_descriptor() -> None:
    class OverSocket(Transport):
        def get_extra_info(self, name: str) -> Any:
            return ours if name == "socket" else None

    ours, theirs = socket.socketpair()
    descriptors = Descriptors(1)
    sender = SliceSender.over(OverSocket(), Loop(), lambda: None, -1, descriptors)  # type: ignore[arg-type]
    assert descriptors.used == 1
    assert sender is not None
    sender.close()
    sender.close()
    assert descriptors.used == 0
    for end in (ours, theirs):
        end.close()


def test_unsent_bytes_are_those_in_memory(sending: Sending, log: tuple[int, bytes]) -> None:
    sending.transport.unsent = 1
    sending.sender.send([bytearray(b"head"), FileSlice(log[0], 0, 1000), bytearray(b"tail!")])
    assert sending.sender.unsent_bytes == 9


def test_a_file_that_ends_within_a_slice_is_an_error(sending: Sending, log: tuple[int, bytes]) -> None:
    fd, data = log
    assert not sending.sender.send([FileSlice(fd, len(data) - 100, 200)])
    assert sending.loop.writers, "the loop asks for the rest when the socket takes bytes, as it does now"
    with pytest.raises(OSError, match="the log ends within a slice of 200 bytes"):
        sending.sender.proceed()


def test_a_full_socket_is_not_tried_twice(
    sending: Sending, log: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fd, data = log
    calls = []
    sendfile = os.sendfile

    def counted(out_fd: int, in_fd: int, offset: int, count: int) -> int:
        calls.append(offset)
        return sendfile(out_fd, in_fd, offset, count)

    monkeypatch.setattr(os, "sendfile", counted)
    assert not sending.sender.send([FileSlice(fd, 0, len(data))])
    assert calls == [0]


def test_close_stops_watching(sending: Sending, log: tuple[int, bytes]) -> None:
    fd, data = log
    sending.sender.send([FileSlice(fd, 0, len(data))])
    assert sending.loop.writers
    sending.sender.close()
    assert not sending.loop.writers
