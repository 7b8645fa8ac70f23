"""Kafka's small text files of offsets (data plane).

    0                        version
    2                        how many entries follow
    orders 0 1234            topic, partition, offset            (recovery-point-offset-checkpoint,
    orders 1 87                                                   log-start-offset-checkpoint,
                                                                  replication-offset-checkpoint)

    0
    2
    0 0                      leader epoch, its first offset      (leader-epoch-checkpoint)
    3 1200

A file that does not read as a whole — a wrong count, a line that does not parse, a last line without its end — is as good as none:
every one of them can be done without, at the price of a longer recovery.

Crash argument: files are replaced by rename, so the end of the process leaves the old content or the new; after a power cut, one that
was not synced may also be empty or broken. What each absence costs:

- recovery points: the whole log is read again after an unclean stop. A value beyond the log's end is taken as the end.
- log starts: the log starts with its first segment, so records removed by DeleteRecords from the middle of a segment
  come back. The log is flushed up to a new start before the start is written down, so a value beyond the log's end is rot, and ignored.
- high watermarks: one replica's high watermark is its log's end; several agree on it again by fetching.
- leader epochs: read again from the batches, each of which carries its epoch.

A flipped digit that leaves another number is not seen: the format has no checksum. A recovery point that is too high
is made harmless by looking at every segment's tail at each start, and at the whole last segment after an unclean one.

Source: Kafka's `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.log.disk import Disk

VERSION = 0
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"


class CorruptCheckpoint(ValueError):
    """The file is not a whole checkpoint."""


def encode_lines(lines: Iterable[str]) -> bytes:
    """Puts version and count in front of the entries."""
    body = list(lines)
    return "\n".join([str(VERSION), str(len(body)), *body, ""]).encode()


def decode_lines(data: bytes) -> list[list[str]]:
    """Returns the fields of each entry.

    Raises:
        CorruptCheckpoint: the file is not whole.
    """
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(str(error)) from error
    if len(lines) < 3 or lines[-1] != "":
        raise CorruptCheckpoint("the file is cut off")
    if lines[0].strip() != str(VERSION):
        raise CorruptCheckpoint(f"unknown version {lines[0]!r}")
    entries = [line.split() for line in lines[2:-1]]
    if not lines[1].strip().isdecimal() or int(lines[1]) != len(entries):
        raise CorruptCheckpoint(f"{lines[1]!r} entries promised, {len(entries)} found")
    return entries


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """Reads an offset checkpoint.

    Raises:
        CorruptCheckpoint: the file is not whole, or an offset or partition is not a number.
    """
    offsets: dict[tuple[str, int], int] = {}
    for fields in decode_lines(data):
        if len(fields) != 3 or not fields[1].isdecimal() or not fields[2].isdecimal():
            raise CorruptCheckpoint(f"not an entry: {' '.join(fields)!r}")
        offsets[fields[0], int(fields[1])] = int(fields[2])
    return offsets


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_offsets(disk: Disk, path: str) -> dict[tuple[str, int], int] | None:
    """The offsets in a checkpoint; empty when the file is missing, None when it is there but not whole."""
    try:
        return decode_offsets(disk.read_file(path))
    except FileNotFoundError:
        return {}
    except CorruptCheckpoint:
        return None
