"""Everything that clients can read of a cluster, as one dictionary: two brokers on one directory must give the same."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType
from kafka import KafkaAdminClient

from barnabas.client import admin as barnabas_admin
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from tests.conform.same_directory.week import DAY_MS, MONDAY_MS, QUIET, admin

GROUPS = ("billing", "search", "accounts")
COMPACTED = "prices"
TRANSACTIONS = ("committed", "aborted", "open")


def observe(bootstrap: str) -> dict[str, Any]:
    """Read a cluster as a stranger would, with librdkafka, kafka-python and raw requests."""
    ends = _offsets(bootstrap)
    return {
        **{
            f"records {isolation}": _records(bootstrap, ends, isolation)
            for isolation in ("read_uncommitted", "read_committed")
        },
        "offsets": ends,
        "groups": _groups(bootstrap),
        "share groups": _share_groups(bootstrap),
        "configs": _configs(bootstrap),
        "quotas": _quotas(bootstrap),
        "passwords": _passwords(bootstrap),
        "transactions": _transactions(bootstrap),
        "topics": _topics(bootstrap),
    }


def _partitions(bootstrap: str) -> list[TopicPartition]:
    topics = admin(bootstrap).list_topics(timeout=30).topics
    return [
        TopicPartition(name, index)
        for name, topic in sorted(topics.items())
        if not name.startswith("__")
        for index in sorted(topic.partitions)
    ]


def _offsets(bootstrap: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Offsets by time, day by day, with the first and the last; compacted topics lose some in between."""
    specs = {f"day {day}": OffsetSpec.for_timestamp(MONDAY_MS + day * DAY_MS) for day in range(9)}
    specs |= {"first": OffsetSpec.earliest(), "last": OffsetSpec.latest(), "newest": OffsetSpec.max_timestamp()}
    client, partitions = admin(bootstrap), _partitions(bootstrap)
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for name, spec in specs.items():
        for at, future in client.list_offsets(dict.fromkeys(partitions, spec)).items():
            info = future.result(60)
            if at.topic != COMPACTED or name == "last":
                found.setdefault(f"{at.topic}-{at.partition}", {})[name] = (info.offset, info.timestamp)
    return found


def _records(bootstrap: str, ends: dict[str, dict[str, tuple[int, int]]], isolation: str) -> dict[str, Any]:
    """Number and digest of each partition's records: offset, time, key, value and headers; of a compacted one the newest by key."""
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "observer", "isolation.level": isolation, "enable.auto.commit": False,
        "enable.partition.eof": True, "fetch.wait.max.ms": 50, "check.crcs": True, **QUIET,
    })  # fmt: skip
    partitions = [TopicPartition(at.topic, at.partition, 0) for at in _partitions(bootstrap)]
    for at in partitions:
        first = ends[f"{at.topic}-{at.partition}"].get("first", (0, 0))[0]
        at.offset = first
    reader.assign(partitions)
    open_ends = {(at.topic, at.partition) for at in partitions}
    records: dict[str, list[Any]] = {}
    newest: dict[str, dict[Any, Any]] = {}
    until = time.monotonic() + 60
    while open_ends:
        assert time.monotonic() < until, f"no end of {sorted(open_ends)}"
        for message in reader.consume(2000, timeout=1):
            name = f"{message.topic()}-{message.partition()}"
            if message.error():
                open_ends.discard((message.topic(), message.partition()))
                continue
            row = (message.offset(), message.timestamp(), message.key(), message.value(), message.headers())
            if message.topic() == COMPACTED:
                newest.setdefault(name, {})[message.key()] = row
            else:
                records.setdefault(name, []).append(row)
    reader.close()
    for name, by_key in newest.items():
        # A tombstone may be gone already.
        records[name] = sorted(row for row in by_key.values() if row[3] is not None)
    return {name: (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()) for name, rows in records.items()}


def _groups(bootstrap: str) -> dict[str, Any]:
    client = admin(bootstrap)
    found: dict[str, Any] = {}
    for group in GROUPS:
        (future,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        committed = future.result(60).topic_partitions
        (described,) = client.describe_consumer_groups([group]).values()
        group_state = described.result(60)
        found[group] = (
            sorted((at.topic, at.partition, at.offset, at.metadata) for at in committed),
            str(group_state.state),
            group_state.is_simple_consumer_group,
        )
    listed = client.list_consumer_groups().result(60).valid
    found["listed"] = sorted((each.group_id, str(each.type)) for each in listed if each.group_id in GROUPS)
    return found


def _share_groups(bootstrap: str) -> Any:
    with barnabas_admin.Admin(bootstrap) as own:
        offsets = own.list_share_group_offsets("workers")
        return sorted((str(at), str(found)) for at, found in offsets.items())


def _configs(bootstrap: str) -> dict[str, Any]:
    """The settings that somebody set; defaults differ from release to release."""
    names = sorted({at.topic for at in _partitions(bootstrap)})
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    resources += [ConfigResource(ResourceType.BROKER, name) for name in ("1",)]
    found: dict[str, Any] = {}
    for resource, future in admin(bootstrap).describe_configs(resources).items():
        dynamic = {name: entry.value for name, entry in future.result(60).items() if not entry.is_default}
        kind = str(resource.restype)
        if resource.restype is ResourceType.BROKER:
            dynamic = {name: dynamic.get(name) for name in ("log.retention.ms", "log.cleaner.io.buffer.size")}
        found[f"{kind} {resource.name}"] = dynamic
    with barnabas_admin.Admin(bootstrap) as own:
        group = barnabas_admin.ConfigResource(barnabas_admin.ResourceType.GROUP, "workers")
        entries = barnabas_admin.result(own.describe_configs([group])[group])
        found["group workers"] = sorted((each.name, each.value) for each in entries if not each.is_default)
    return found


def _quotas(bootstrap: str) -> list[Any]:
    host, _, port = bootstrap.partition(":")
    connection = BlockingConnection(host, int(port))
    answer = connection.request(messages.DescribeClientQuotasRequest(components=[], strict=False))
    connection.close()
    return sorted(
        (
            sorted((part.entity_type, part.entity_name) for part in entry.entity),
            sorted((limit.key, limit.value) for limit in entry.values),
        )
        for entry in answer.entries
    )


def _passwords(bootstrap: str) -> list[Any]:
    described: Any = admin(bootstrap).describe_user_scram_credentials()
    return sorted(
        (user, [(str(info.mechanism), info.iterations) for info in found.scram_credential_infos])
        for user, found in described.result(60).items()
    )


def _transactions(bootstrap: str) -> dict[str, Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = client.describe_transactions(list(TRANSACTIONS))
        return {
            str(name): (
                str(found.state), found.producer_id, found.producer_epoch, found.transaction_timeout_ms,
                found.transaction_start_time_ms, sorted(map(tuple, found.topic_partitions)),
            )
            for name, found in sorted(described.items())
        }  # fmt: skip
    finally:
        client.close()


def _topics(bootstrap: str) -> dict[str, Any]:
    with barnabas_admin.Admin(bootstrap) as own:
        partitions = own.describe_partitions()
        topics = {each.name: each.topic_id.hex() for each in own.list_topics(internal=True)}
    described = {
        str(at): (found.leader, found.replicas, found.isr, found.elr, found.last_known_elr, found.offline)
        for at, found in sorted(partitions.items())
        if not at.topic.startswith("__")
    }
    return {"ids": topics, "partitions": described}
