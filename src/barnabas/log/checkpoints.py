"""Kafka's small text files of offsets.

    0                        version
    2                        how many entries follow
    orders 0 1234            topic, partition, offset            (recovery-point-offset-checkpoint,
    orders 1 87                                                   log-start-offset-checkpoint,
                                                                  replication-offset-checkpoint)

    0
    2
    0 0                      leader epoch, its first offset      (leader-epoch-checkpoint)
    3 1200

A file that is not complete (a wrong count, a line that does not parse, a last line without its end) counts as missing:
the broker can do without each of them, but recovery then takes longer.

Crash argument: files are replaced by rename, so the end of the process leaves the old content or the new. After a power cut an unsynced
file may also be empty or broken. What a missing file costs:

- recovery points: recovery reads the whole log after an unclean stop. A value beyond the log's end counts as the end.
- log starts: the log starts with its first segment, so records that DeleteRecords removed from the middle of a segment
  are back. The log is flushed up to a new start before the start is written, so a value beyond the log's end is rot, and ignored.
- high watermarks: a sole replica's high watermark is its log's end; several replicas find it again by fetching.
- leader epochs: recovery reads them from the batches, each of which carries its epoch.

The format has no checksum, so a flipped digit is not noticed. A recovery point that is too high does no harm, because
every start checks each segment's tail, and after an unclean stop the whole last segment.

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
    """The file is not a complete checkpoint."""


def encode_lines(lines: Iterable[str]) -> bytes:
    """Put version and count in front of the entries."""
    body = list(lines)
    return "\n".join([str(VERSION), str(len(body)), *body, ""]).encode()


def decode_lines(data: bytes) -> list[list[str]]:
    """Return the fields of each entry.

    Raises:
        CorruptCheckpoint: the file is not complete.
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
        raise CorruptCheckpoint(f"the header says {lines[1]!r} entries, {len(entries)} found")
    return entries


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint.

    Raises:
        CorruptCheckpoint: the file is not complete, or an offset or partition is not a number.
    """
    offsets: dict[tuple[str, int], int] = {}
    for fields in decode_lines(data):
        if len(fields) != 3 or not fields[1].isdecimal() or not fields[2].isdecimal():
            raise CorruptCheckpoint(f"not an entry: {' '.join(fields)!r}")
        offsets[fields[0], int(fields[1])] = int(fields[2])
    return offsets


def offset_line(topic: str, partition: int, offset: int) -> str:
    """Return an entry of an offset checkpoint."""
    return f"{topic} {partition} {offset}"


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return encode_lines(offset_line(*key, offset) for key, offset in offsets.items())


def read_offsets(disk: Disk, path: str) -> dict[tuple[str, int], int] | None:
    """Return the offsets in a checkpoint; empty if the file is missing, None if it is not complete."""
    try:
        return decode_offsets(disk.read_file(path))
    except FileNotFoundError:
        return {}
    except CorruptCheckpoint:
        return None
