"""The reads after the last write: every key from its beginning to its end, and the groups' offsets.

The end is the high watermark. A read_committed consumer reaches it when no transaction is open: a successor or the timeout must end
those that crashed clients left. A key that cannot be read to its end in time is not marked as read, and its last records are
reported as unseen.
"""

from __future__ import annotations

import time

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as LibraryPartition

from barnabas.client.admin import Admin
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.offsets import LATEST
from barnabas.client.outcome import results
from barnabas.client.patience import insist
from barnabas.security.client_security import ClientSecurity
from barnabas.verify.consumer import Layout, ReadCommittedConsumer
from barnabas.verify.history import Offsets, Outcome, Poll
from barnabas.verify.recorder import Recorder


def read_everything(
    bootstrap: str,
    layout: Layout,
    keys: tuple[int, ...],
    recorder: Recorder,
    patience_s: float,
    security: ClientSecurity | None = None,
) -> list[int]:
    """Read all keys and record one operation for each.

    Args:
        patience_s: how long to wait without progress.

    Returns:
        The keys that could not be read to their end.
    """
    process = recorder.new_process()
    consumer = ReadCommittedConsumer(
        bootstrap, layout, f"verify-final-{process}", settings={"enable.partition.eof": True}, security=security
    )
    recorder.record(process, Outcome.INVOKE, "poll", [Poll({})], keys=keys, final=True)
    ends = _ends(Admin(bootstrap, security=security), layout, keys, patience_s)
    consumer.consumer.assign([LibraryPartition(*layout.place(key), 0) for key in keys])
    found: dict[int, list[tuple[int, int]]] = {key: [] for key in keys}
    missing = {key for key in keys if ends[key] > 0}
    deadline = time.monotonic() + patience_s
    while missing and time.monotonic() < deadline:
        for message in consumer.consumer.consume(1000, 0.5):
            error = message.error()
            if error is None:
                key, offset, value = consumer.read(message)
                found[key].append((offset, value))
                deadline = time.monotonic() + patience_s
                reached = offset + 1
            elif error.name() == "_PARTITION_EOF":
                key, reached = (
                    layout.key(str(message.topic()), int(message.partition() or 0)),
                    int(message.offset() or 0),
                )
            else:
                continue
            if reached >= ends[key]:
                missing.discard(key)
    consumer.close()
    for key in keys:
        outcome = Outcome.INFO if key in missing else Outcome.OK
        why = f"not read to its end at {ends[key]} in {patience_s:.0f} s" if key in missing else None
        recorder.record(process, outcome, "poll", [Poll({key: found[key]})], keys=(key,), error=why, final=True)
    return sorted(missing)


def _ends(opened: Admin, layout: Layout, keys: tuple[int, ...], patience_s: float) -> dict[int, int]:
    """Return the high watermarks; a read_committed consumer would get the last stable offsets.

    The last fault may kill a broker during this phase: then the client asks again.
    """
    places = {TopicPartition(*layout.place(key)): key for key in keys}
    asked = dict.fromkeys(places, LATEST)
    with opened as admin:
        found = insist(admin.cluster, lambda: results(admin.list_offsets(asked)), int(patience_s * 1000))
    return {places[each]: answer.offset for each, answer in found.items()}


def read_committed_offsets(
    bootstrap: str,
    layout: Layout,
    group: str,
    keys: tuple[int, ...],
    recorder: Recorder,
    patience_s: float,
    security: ClientSecurity | None = None,
) -> None:
    """Record a group's committed offsets; wait for pending transactional commits, as consumers do."""
    process = recorder.new_process()
    consumer = ReadCommittedConsumer(bootstrap, layout, group, security=security)
    recorder.record(process, Outcome.INVOKE, "committed", [Offsets(group, {})], final=True)
    deadline = time.monotonic() + patience_s
    partitions = [LibraryPartition(*layout.place(key)) for key in keys]
    committed: list[LibraryPartition] | None = None
    while committed is None:
        try:
            committed = consumer.consumer.committed(partitions, 10)
        except KafkaException as error:
            if time.monotonic() > deadline:
                recorder.record(process, Outcome.INFO, "committed", error=error, final=True)
                break
    if committed is not None:
        positions = {layout.key(each.topic, each.partition): each.offset for each in committed if each.offset >= 0}
        recorder.record(process, Outcome.OK, "committed", [Offsets(group, positions)], final=True)
    consumer.close()
