"""The `partition.metadata` file: which topic a directory belongs to.

    version: 0
    topic_id: 8-r_aYGkTGyHkAk24Z8gPA

A topic that is deleted and created again keeps its name and changes its id; the id tells an old directory from a new.

Crash argument: the file is written by rename when the directory is created, and synced with the first flush of the log. A power cut
before that may leave it missing or incomplete: then nothing in the directory was promised to last, it may be of a topic that was deleted
since, and it becomes a stray, as in Kafka.

Source: Kafka's `PartitionMetadataFile`.
"""

from __future__ import annotations

from barnabas.log.disk import Disk
from barnabas.protocol.primitives import Uuid, uuid_from_str, uuid_to_str


def encode(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_str(topic_id)}".encode()


def decode(data: bytes) -> Uuid | None:
    """Return the topic id, None if the file is not complete."""
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if line)
        if fields.get("version") != "0":
            return None
        return uuid_from_str(fields["topic_id"].strip())
    except (KeyError, ValueError):
        return None


def read(disk: Disk, path: str) -> Uuid | None:
    try:
        return decode(disk.read_file(path))
    except FileNotFoundError:
        return None
