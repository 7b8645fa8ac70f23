"""A made-up week: what a shop's programs might leave in a cluster, and the day after it.

The records' times lie over the seven days before `NOW`, and a few hours in the future, so that nothing is too old for its topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import Any

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.client import admin as barnabas_admin
from barnabas.client.admin import ResourceType
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages

DAY_MS = 86_400_000
NOW_MS = int(time.time() * 1000)
MONDAY_MS = NOW_MS - 6 * DAY_MS - 3_600_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEEP = {"retention.ms": "-1"}
TOPICS = {
    "orders": (3, KEEP),
    "codecs": (2, KEEP),
    "clicks": (1, {**KEEP, "segment.bytes": "1048576", "index.interval.bytes": "512"}),
    "prices": (2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "1000"}),
    "payments": (2, {**KEEP, "min.insync.replicas": "2"}),
    "trimmed": (1, KEEP),
    "again": (1, KEEP),
    "empty": (4, {"max.message.bytes": "2000000", "compression.type": "zstd"}),
    "jobs": (2, KEEP),
}
QUIET = {"log_level": 0, "socket.keepalive.enable": True}


@cache
def admin(bootstrap: str) -> AdminClient:
    """An administrator, kept: librdkafka drops what is asked of one that goes out of use."""
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def producer(bootstrap: str, codec: str = "none", **settings: Any) -> Producer:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20, **QUIET, **names})


def all_done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(60)


def _delivered(error: object, message: object) -> None:
    assert error is None, error


def write(bootstrap: str, topic: str, partition: int, days: Iterable[int], count: int, codec: str = "none") -> None:
    """Write numbered records, with keys, headers and the time of their day."""
    sending = producer(bootstrap, codec, enable_idempotence=True)
    for day in days:
        for number in range(count):
            value = None if topic == "prices" and number % 17 == 3 else f"{topic} {day} {number} ".encode() * 4
            sending.produce(
                topic,
                value,
                key=f"k{number % 23}",
                partition=partition,
                timestamp=MONDAY_MS + day * DAY_MS + number * 2_000,
                on_delivery=_delivered,
                headers=[("day", b"%d" % day), ("empty", None)],
            )
    assert sending.flush(60) == 0


def consume(bootstrap: str, group: str, protocol: str, topic: str, count: int) -> None:
    """Read some records as a member of a group, and commit."""
    settings = {} if protocol == "consumer" else {"session.timeout.ms": 10_000}
    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, **settings, **QUIET,
    })  # fmt: skip
    reader.subscribe([topic])
    seen = 0
    until = time.monotonic() + 60
    while seen < count:
        assert time.monotonic() < until, f"{group} reads {seen} of {count}"
        message = reader.poll(1)
        if message is not None and not message.error():
            seen += 1
            if seen == count:
                reader.commit(message=message, asynchronous=False)
    reader.close()


def share(bootstrap: str, group: str, topic: str, count: int) -> None:
    """Take and acknowledge some records of a queue."""
    set_config(bootstrap, ResourceType.GROUP, group, "share.auto.offset.reset", "earliest")
    taking = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    taking.subscribe([topic])
    seen = 0
    until = time.monotonic() + 60
    while seen < count:
        assert time.monotonic() < until, f"{group} takes {seen} of {count}"
        # A poll acknowledges what the one before it has returned.
        seen += sum(1 for message in taking.poll(1) or () if not message.error())
    taking.commit_sync()
    taking.close()


def transact(bootstrap: str, name: str, days: Iterable[int], end: str) -> Producer:
    """Write a transaction in both partitions; `end` says how it ends, "open" leaves it open."""
    paying = producer(bootstrap, transactional_id=name, transaction_timeout_ms=600_000)
    paying.init_transactions(60)
    paying.begin_transaction()
    for day in days:
        for partition in (0, 1):
            moment = MONDAY_MS + day * DAY_MS
            paying.produce("payments", f"{name} {day}", key=end, partition=partition, timestamp=moment)
    assert paying.flush(60) == 0
    if end == "commit":
        group = [TopicPartition("orders", 0, 11)]
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "accounts", **QUIET})
        paying.send_offsets_to_transaction(group, reader.consumer_group_metadata(), 60)
        paying.commit_transaction(60)
        reader.close()
    elif end == "abort":
        paying.abort_transaction(60)
    return paying


def set_config(bootstrap: str, kind: ResourceType, name: str, setting: str, value: str) -> None:
    """Set a setting; librdkafka has no way to name the default of all brokers, or a group."""
    with barnabas_admin.Admin(bootstrap) as own:
        resource = barnabas_admin.ConfigResource(kind, name)
        outcome = own.alter_configs({resource: [barnabas_admin.ConfigChange(setting, value)]})[resource]
        barnabas_admin.result(outcome)


def set_quota(bootstrap: str, entity: dict[str, str], limits: dict[str, float]) -> None:
    host, _, port = bootstrap.partition(":")
    request = messages.AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[request.OpData(key=key, value=value) for key, value in limits.items()],
    )
    connection = BlockingConnection(host, int(port))
    (answer,) = connection.request(request(entries=[entry])).entries
    connection.close()
    assert answer.error_code == 0, answer


def set_password(bootstrap: str, user: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    change = UserScramCredentialUpsertion(user, info, b"secret", b"salt")
    all_done(admin(bootstrap).alter_user_scram_credentials([change]))


def create(bootstrap: str, *names: str) -> None:
    made = [NewTopic(name, TOPICS[name][0], 1, config=TOPICS[name][1]) for name in names]
    all_done(admin(bootstrap).create_topics(made))


def live_a_week(bootstrap: str) -> Producer:
    """Do everything; returns the producer whose transaction is still open."""
    create(bootstrap, *TOPICS)
    write(bootstrap, "again", 0, (0, 1), 20)
    all_done(admin(bootstrap).delete_topics(["again"]))
    for partition in range(3):
        write(bootstrap, "orders", partition, range(7), 40 + partition)
    for number, codec in enumerate(CODECS):
        write(bootstrap, "codecs", number % 2, (number, number + 1), 30, codec)
    write(bootstrap, "clicks", 0, range(7), 1500)
    for partition in range(2):
        write(bootstrap, "prices", partition, range(7), 60)
        write(bootstrap, "jobs", partition, (5,), 30)
    write(bootstrap, "trimmed", 0, range(7), 20)
    all_done(admin(bootstrap).delete_records([TopicPartition("trimmed", 0, 77)]))
    create(bootstrap, "again")
    write(bootstrap, "again", 0, (4, 5), 10, "lz4")
    transact(bootstrap, "committed", range(3), "commit")
    transact(bootstrap, "aborted", range(2), "abort")
    consume(bootstrap, "billing", "classic", "orders", 100)
    consume(bootstrap, "search", "consumer", "clicks", 2000)
    share(bootstrap, "workers", "jobs", 25)
    set_config(bootstrap, ResourceType.TOPIC, "orders", "max.message.bytes", "1500000")
    set_config(bootstrap, ResourceType.TOPIC, "orders", "retention.bytes", "123456789")
    set_config(bootstrap, ResourceType.BROKER, "", "log.retention.ms", "777600000")
    set_config(bootstrap, ResourceType.BROKER, "1", "log.cleaner.io.buffer.size", "600000")
    set_quota(bootstrap, {"user": "ann", "client-id": "shop"}, {"producer_byte_rate": 1e8, "request_percentage": 200})
    set_password(bootstrap, "ann")
    all_done(admin(bootstrap).create_partitions([NewPartitions("empty", 6)]))
    return transact(bootstrap, "open", (6,), "open")


def live_another_day(bootstrap: str) -> None:
    """What happens on the eighth day, on the other broker."""
    all_done(admin(bootstrap).create_topics([NewTopic("new", 2, 1, config=KEEP)]))
    write(bootstrap, "new", 1, (6,), 25, "zstd")
    write(bootstrap, "orders", 1, (6,), 10, "gzip")
    write(bootstrap, "prices", 0, (6,), 40)
    transact(bootstrap, "open", (6,), "commit")
    transact(bootstrap, "committed", (6,), "abort")
    consume(bootstrap, "billing", "classic", "orders", 30)
    consume(bootstrap, "search", "consumer", "clicks", 500)
    # A poll may have taken all of the week's.
    write(bootstrap, "jobs", 0, (6,), 20)
    share(bootstrap, "workers", "jobs", 10)
    set_config(bootstrap, ResourceType.TOPIC, "orders", "max.message.bytes", "1600000")
    set_config(bootstrap, ResourceType.TOPIC, "payments", "min.insync.replicas", "1")
    set_quota(bootstrap, {"client-id": "shop"}, {"consumer_byte_rate": 1e8})
    set_password(bootstrap, "bob")
    all_done(admin(bootstrap).delete_topics(["again"]))
    all_done(admin(bootstrap).delete_records([TopicPartition("trimmed", 0, 90)]))
