"""Lines of `produce`'s input: one record each, which ends with a delimiter of any length.

Lines come in batches: what one read of the input brings. So a pipe's lines are produced as soon as they are there, and a file's cost a
split of 256 KiB, and nothing for each of them. The last line needs no delimiter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import BinaryIO, NamedTuple

from barnabas.cli.record_reader import Given, Pair

_READ_BYTES = 1 << 18


class Lines(NamedTuple):
    """How lines become records.

    Attributes:
        delimiter: ends a line; not empty.
        key_delimiter: stands between key and value, as in kcat: a line without it has no key. None if no line has one.
    """

    delimiter: bytes
    key_delimiter: bytes | None

    @staticmethod
    def of(delimiter: bytes, key_delimiter: bytes | None) -> Lines:
        """Return lines with these delimiters.

        Raises:
            ValueError: one of them is empty.
        """
        if not delimiter or key_delimiter == b"":
            raise ValueError("a delimiter needs at least one character")
        return Lines(delimiter, key_delimiter)

    def batches(self, stream: BinaryIO) -> Iterator[list[bytes]]:
        """Yield the lines of a stream as they arrive; no batch is empty."""
        read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        buffer = bytearray()
        while chunk := read(_READ_BYTES):
            searched = max(0, len(buffer) - len(self.delimiter) + 1)
            buffer += chunk
            if buffer.find(self.delimiter, searched) < 0:
                continue
            lines = bytes(buffer).split(self.delimiter)
            buffer = bytearray(lines.pop())
            yield lines
        if buffer:
            yield [bytes(buffer)]

    def pairs(self, lines: Iterable[bytes]) -> Iterator[Pair]:
        """Yield the value and the key of each line."""
        delimiter = self.key_delimiter
        if delimiter is None:
            return zip(lines, repeat(None))
        parted = [line.partition(delimiter) for line in lines]
        return iter([(value, key) if found else (key, None) for key, found, value in parted])

    def records(self, stream: BinaryIO) -> Iterator[Given]:
        """Yield the records of a stream, one by one."""
        for lines in self.batches(stream):
            yield from (Given(value, key) for value, key in self.pairs(lines))
