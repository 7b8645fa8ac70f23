"""`barnabas plan --measure`: what one partition and one consumer of the cluster do, from a short load in a topic of its own.

The topic is deleted at the end, also after Ctrl-C, SIGTERM and an error. A SIGKILL leaves it; then its records expire by themselves, and
the next run deletes it, once it is so old that no run can still use it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator
from typing import NamedTuple

import click
from confluent_kafka import Consumer, Producer

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected
from barnabas.cli.perf_load import ConsumeLoad, ProduceLoad
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import Admin, NewTopic, result, results
from barnabas.protocol.errors import KafkaError

_PREFIX = "barnabas-plan"
_NAME = re.compile(rf"{_PREFIX}-(\d+)-[0-9a-f]{{8}}")
_LEFT_BEHIND_S = 3600
_EXPIRE_MS = 600_000
_MOST_RECORDS = 10**9


class Speeds(NamedTuple):
    """The measured rates.

    Attributes:
        partition_rate: bytes a second that one producer wrote to one partition, with acks=all.
        consumer_rate: records a second that one consumer read, without any work on them.
        replicas: of the partition.
        records: that were written.
    """

    partition_rate: float
    consumer_rate: float
    replicas: int
    records: int


def measure(session: Session, *, record_size: int, replicas: int, seconds: float) -> Speeds:
    """Load a topic of its own, and delete it.

    Raises:
        Failure: no record was acknowledged, or the cluster is gone.
        KafkaError: the topic cannot be created.
    """
    with ends_cleanly(), _own_topic(session, replicas) as (topic, copies):
        settings = {"acks": "all", "linger.ms": 5, "message.timeout.ms": session.timeout_ms}
        # It is closed before the topic is deleted: a producer that lives asks for its topics, and the broker creates this one again.
        with contextlib.closing(connected(Producer, session, (), settings)) as producer:
            sending = ProduceLoad(
                producer, topic, records=_MOST_RECORDS, size=record_size, seconds=seconds, partition=0
            )
            began_s = time.monotonic()
            with shown(lambda: Measured(sending.line(), time.monotonic() - began_s, seconds)):
                sending.run()
        consumer = connected(Consumer, session, (), {"group.id": topic, "enable.auto.commit": False})
        reading = ConsumeLoad(
            consumer, {(topic, 0): (0, sending.acknowledged)}, records=None, timeout_s=session.timeout_ms / 1000
        )
        try:
            with shown(lambda: Measured(reading.line(), reading.records, reading.wanted)):
                reading.run()
        finally:
            consumer.close()
    speed = reading.figures().fetch_nmsg_per_sec
    if not speed:
        raise Failure("the load was too short to measure", "--measure-time takes more seconds")
    written = sending.figures()
    return Speeds(written.records_per_sec * record_size, speed, copies, written.records_sent)


@contextlib.contextmanager
def _own_topic(session: Session, replicas: int) -> Iterator[tuple[str, int]]:
    """Yield a new topic of one partition and its replicas, as many as there are brokers at most."""
    name = f"{_PREFIX}-{int(time.time())}-{secrets.token_hex(4)}"
    with session.admin() as admin:
        _delete_old(admin)
        copies = min(replicas, len(admin.describe_cluster().brokers))
        try:
            new = NewTopic(name, partitions=1, replication_factor=copies, configs={"retention.ms": str(_EXPIRE_MS)})
            results(admin.create_topics([new]))
            yield name, copies
        finally:
            _delete(session, name)


def _delete(session: Session, name: str) -> None:
    # A connection of its own: a signal may have cut an answer of the other one in two.
    try:
        with session.admin() as admin:
            if any(each.name == name for each in admin.list_topics()):
                result(admin.delete_topics([name])[name])
    except KafkaError as error:
        click.echo(f"warning: topic {name} was not deleted: {error} (`barnabas topic delete {name}`)", err=True)


def _delete_old(admin: Admin) -> None:
    """Delete the topics that killed runs left behind."""
    now_s = time.time()
    names = [each.name for each in admin.list_topics()]
    found = [(name, matched) for name in names if (matched := _NAME.fullmatch(name))]
    if old := [name for name, matched in found if now_s - int(matched[1]) > _LEFT_BEHIND_S]:
        admin.delete_topics(old)
