"""The names of the files of a log.

    <topic>-<partition>/
        00000000000000000123.log          batches from offset 123 on
        00000000000000000123.index        offset index of that segment
        00000000000000000123.timeindex    time index of that segment
        00000000000000000123.txnindex     aborted transactions of that segment
        00000000000000000123.snapshot     producer state before offset 123
        leader-epoch-checkpoint           first offset of each leader epoch
        partition.metadata                topic id
        *.cleaned, *.swap                 a compaction that has not ended; *.deleted: to be removed
    <topic>-<partition>.<id>-delete/      a deleted partition, to be removed
    <topic>-<partition>.<id>-stray/       a partition that the metadata does not assign to this broker, kept
    <topic>-<partition>.<id>-future/      a copy that takes the place of the partition's directory in another data directory

Offsets are 20 digits with leading zeros, so that names sort as numbers do. A topic's name becomes a path only if it is valid: no name from
a record or a request leads out of the data directory. Source: Kafka's `LogFileUtils`.
"""

from __future__ import annotations

import re

from barnabas.protocol import topic_names

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
DELETE_DIR_SUFFIX = "-delete"
STRAY_DIR_SUFFIX = "-stray"
FUTURE_DIR_SUFFIX = "-future"
NAME_BYTES_MAX = 255

_OFFSET_FILE = re.compile(r"(\d{20})(\.[a-z]+)\Z")
_PARTITION_DIR = re.compile(r"(.+)-(\d+)\Z")
_FUTURE_DIR = re.compile(r"(.+-\d+)\.[^.\s]+-future\Z")


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """Split `00000000000000000123.log` into (123, ".log"); None for any other name."""
    match = _OFFSET_FILE.match(name)
    return (int(match[1]), match[2]) if match else None


def partition_dir_name(topic: str, partition: int) -> str:
    """Return the name of a partition's directory; the topic's name must be valid and the index not negative."""
    _check(topic, partition)
    return f"{topic}-{partition}"


def moved_dir_name(topic: str, partition: int, unique: str, suffix: str) -> str:
    """Return the name for a directory that is deleted or set aside; a long topic name is cut, as Kafka does."""
    _check(topic, partition)
    end = f"-{partition}.{unique}{suffix}"
    return topic[: NAME_BYTES_MAX - len(end)] + end


def _check(topic: str, partition: int) -> None:
    fault = topic_names.fault(topic)
    assert fault is None, fault
    assert partition >= 0, f"{topic} has no partition {partition}"


def parse_partition_dir_name(name: str) -> tuple[str, int] | None:
    """Split `orders-3` into ("orders", 3); None for any other name, deleted and stray directories among them."""
    match = _PARTITION_DIR.match(name)
    return (match[1], int(match[2])) if match and topic_names.fault(match[1]) is None else None


def future_dir_name(topic: str, partition: int, unique: str) -> str:
    """Return the name of the directory of a future log; the topic's name must leave room for it, because Kafka cuts none of these."""
    _check(topic, partition)
    return f"{topic}-{partition}.{unique}{FUTURE_DIR_SUFFIX}"


def parse_future_dir_name(name: str) -> tuple[str, int] | None:
    """Split `orders-3.0f…-future` into ("orders", 3); None for any other name."""
    match = _FUTURE_DIR.match(name)
    return parse_partition_dir_name(match[1]) if match else None


def partition_name(directory: str) -> str:
    """Return topic and partition, as in `orders-3`, of the log in a directory; of a future log too."""
    name = directory.rpartition("/")[2]
    match = _FUTURE_DIR.match(name)
    return match[1] if match else name
