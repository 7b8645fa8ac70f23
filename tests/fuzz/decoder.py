"""Bytes into every decoder: requests with their headers, responses, the messages of logs, record batches.

Oracles
- A decoder returns a message or raises a `KafkaError`; nothing else leaves it.
- What was decoded can be encoded, and the encoded form decodes to the same message.
- Memory follows the bytes that are there, not the lengths they announce: the caller limits the process.
"""

from __future__ import annotations

import contextlib
import math
from random import Random
from typing import Any

from barnabas.protocol.api_keys import request_header_version
from barnabas.protocol.errors import EncodeError, KafkaError
from barnabas.protocol.framing import parse_request_header
from barnabas.protocol.message import Message, Struct
from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import message_names
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.records.record_batch import check_batch, iter_batches
from tests.fuzz.messages import Values, mutated

MAX_RECORD_BYTES = 1 << 20
"""Ceiling of a decompressed batch: a mutated one may announce far more."""

ROUND_TRIPS = 8
"""One decoded message in so many is encoded and decoded again."""


class Decoders:
    """A stream of mutated bytes, each into the decoder it was made for."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.tried = 0
        self.decoded = 0
        self._values = Values(self.random)
        self._classes = [message_class(name) for name in message_names()]
        self._frames: dict[tuple[type[Message], int], list[bytes]] = {}
        self._batches = [_batch(self.random, codec) for codec in Compression for _ in range(8)]

    def one(self) -> None:
        """Try one."""
        self.tried += 1
        if self.random.random() < 0.1:
            self.records(mutated(self.random, self.random.choice(self._batches), self._batches))
            return
        of = self.random.choice(self._classes)
        version = self.random.randint(of.MIN_VERSION, of.MAX_VERSION)
        samples = self._samples(of, version)
        data = self.random.choice(samples)
        if self.random.random() < 0.97:
            data = mutated(self.random, data, samples)
        self.message(of, version, data)

    def _samples(self, of: type[Message], version: int) -> list[bytes]:
        samples = self._frames.setdefault((of, version), [])
        # The samples grow while the run is young, and are replaced one by one later.
        if len(samples) < 24 or self.random.random() < 0.01:
            made = self._encoded(of, version)
            if len(samples) < 24:
                samples.append(made)
            else:
                samples[self.random.randrange(24)] = made
        return samples

    def _encoded(self, of: type[Message], version: int) -> bytes:
        while True:
            try:
                return self._values.message(of, version).encode(version)  # type: ignore[no-any-return]
            except EncodeError:
                continue

    def message(self, of: type[Message], version: int, data: bytes) -> None:
        """Decode bytes as one message, and as a request's whole frame if it is one."""
        try:
            message = of.decode(data, version)
        except KafkaError:
            return
        self.decoded += 1
        if self.decoded % ROUND_TRIPS == 0 and not _has_nan(message):
            again = of.decode(message.encode(version), version)
            assert again == message, (of.NAME, version, data.hex())
        if of.KIND == "request" and of.API_KEY is not None:
            head = of.API_KEY.to_bytes(2) + version.to_bytes(2) + b"\0\0\0\1" + data[:3]
            with contextlib.suppress(KafkaError):
                parse_request_header(memoryview(head + bytes(request_header_version(of.API_KEY, version))))

    def records(self, data: bytes) -> None:
        """Read bytes as record batches, as broker and tools do."""
        buffer = bytearray(data)
        try:
            for position, header in iter_batches(buffer):
                check_batch(buffer, position)
                for _ in iter_records(buffer, position, max_bytes=MAX_RECORD_BYTES):
                    pass
                self.decoded += header.size > 0
        except KafkaError:
            pass
        try:
            # Without the checksum, which stops almost every mutation.
            for _ in iter_records(buffer, max_bytes=MAX_RECORD_BYTES):
                pass
        except KafkaError:
            pass


def _batch(random: Random, codec: Compression) -> bytes:
    records: list[Any] = [
        (
            random.randrange(1000),
            random.choice((None, b"k", b"key" * 9)),
            random.choice((None, b"", b"v" * 50)),
            headers,
        )
        for headers in ([], [("h", b"v")], [("h", None), ("", b"")])
    ]
    return bytes(build_batch(records, compression=codec))


def _has_nan(value: object) -> bool:
    if isinstance(value, Struct):
        return any(_has_nan(getattr(value, name)) for name in value.FIELDS)
    if isinstance(value, list):
        return any(map(_has_nan, value))
    return isinstance(value, float) and math.isnan(value)
