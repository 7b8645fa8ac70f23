"""Elections: the metadata says who leads the partitions of the coordinators' topics, and each coordinator hears of its own once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.delta import MetadataDelta
from barnabas.node.alone import OwnCoordinators
from barnabas.node.coordinators import Coordinators
from barnabas.protocol.messages import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.replication.replica_changes import apply_delta
from barnabas.steps import run_on_the_spot
from barnabas.transaction.hanging_transactions import HangingTransactions
from barnabas.transaction.producer_id_manager import ProducerIdManager
from tests.coordinator.shards import shard_of
from tests.replication.hosting import NODE, Hosting, topic_id

TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "transaction.state.log.num.partitions": "7",
    "transaction.max.timeout.ms": "1234",
    "transaction.two.phase.commit.enable": "true",
    "add.partitions.to.txn.retry.backoff.ms": "11",
}


class Heard:
    """A coordinator that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def on_elected(self, partition: int, epoch: int) -> None:
        self.told.append(("elected", partition, epoch))

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        self.told.append(("resigned", partition))

    def close(self) -> None:
        self.told.append(("closed",))


class Subject:
    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        config = BrokerConfig.from_properties(SETTINGS)
        self.producer_ids: asyncio.Future[Any] = hosting.loop.create_future()
        self.coordinators = Coordinators(
            config,
            hosting.replicas,
            image=lambda: hosting.image,
            resolver=ConfigResolver(config_schema(), NODE, SETTINGS, {}),
            loop=hosting.loop,
            now_ms=hosting.now_ms,
            random=random.Random(1),
            producer_ids=ProducerIdManager(hosting.loop, lambda: self.producer_ids),
            remote=OwnCoordinators(),
        )

    def listen(self, topic: str) -> Heard:
        heard = Heard()
        self.coordinators._by_topic[topic] = heard
        return heard

    def replay(self, *records: Any) -> None:
        delta = MetadataDelta(self.hosting.image)
        for record in records:
            delta.replay(record)
        self.hosting.image = delta.apply()
        run_on_the_spot(apply_delta(self.hosting.replicas, delta, self.hosting.image), None)
        self.coordinators.apply_delta(delta)

    def create(self, name: str, number: int, *leaders: int) -> None:
        self.replay(
            TopicRecord(name=name, topic_id=topic_id(number)),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id(number),
                    replicas=[NODE, 2],
                    isr=[NODE, 2],
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index, leader in enumerate(leaders)
            ),
        )

    def change(self, number: int, **fields: Any) -> None:
        self.replay(PartitionChangeRecord(topic_id=topic_id(number), partition_id=0, **fields))


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    hosting = Hosting(tmp_path)
    made = Subject(hosting)
    yield made
    made.coordinators.close()
    hosting.close()


@pytest.mark.parametrize("topic", TOPICS)
def test_it_is_elected_for_what_this_node_leads(subject: Subject, topic: str) -> None:
    heard = subject.listen(topic)
    others = [subject.listen(other) for other in TOPICS if other != topic]
    subject.create(topic, 1, NODE, 2, NODE)
    assert heard.told == [("elected", 0, 0), ("elected", 2, 0)]
    subject.change(1, isr=[NODE])
    assert len(heard.told) == 2, "once per leader epoch"
    subject.change(1, leader=2)
    subject.change(1, leader=NODE)
    assert heard.told[2:] == [("resigned", 0), ("elected", 0, 2)]
    subject.change(1, leader=2)
    subject.change(1, leader=-1)
    assert heard.told[4:] == [("resigned", 0)], "one that was not elected does not resign"
    assert [other.told for other in others] == [[], []]


def test_a_deleted_topic_ends_every_election(subject: Subject) -> None:
    heard = subject.listen("__transaction_state")
    subject.create("__transaction_state", 1, NODE, NODE)
    subject.replay(RemoveTopicRecord(topic_id=topic_id(1)))
    assert heard.told[2:] == [("resigned", 0), ("resigned", 1)]
    subject.create("__transaction_state", 2, NODE)
    assert heard.told[4:] == [("elected", 0, 0)]


def test_other_topics_are_nobodys(subject: Subject) -> None:
    heard = [subject.listen(topic) for topic in TOPICS]
    subject.create("t", 1, NODE)
    assert [each.told for each in heard] == [[], [], []]


def test_all_are_closed(subject: Subject) -> None:
    heard = [subject.listen(topic) for topic in TOPICS]
    subject.coordinators.close()
    assert [each.told for each in heard] == [[("closed",)]] * 3


def test_partitions_are_counted_in_the_topic_once_it_is_there(subject: Subject) -> None:
    transaction = subject.coordinators.transaction
    ids = [f"tx-{number}" for number in range(100)]
    assert {transaction.partition_of(each) for each in ids} == set(range(7))
    subject.create("__transaction_state", 1, NODE, NODE)
    assert {transaction.partition_of(each) for each in ids} == {0, 1}


def test_settings_and_features_reach_the_transactions(subject: Subject) -> None:
    transaction = subject.coordinators.transaction
    assert transaction.config.transaction_max_timeout_ms == 1234
    assert transaction.config.two_phase_commit_enable
    assert transaction.config.add_partitions_retry_backoff_ms == 11
    subject.create("__transaction_state", 1, NODE)
    subject.hosting.spin()
    shard = shard_of(transaction)
    for level in (0, 2):
        subject.replay(FeatureLevelRecord(name="transaction.version", feature_level=level))
        assert shard._transaction_version() == level


def test_nothing_hangs_before_there_are_transactions(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(HangingTransactions, "look", lambda self: looks.append(repr(self)))
    subject.coordinators.end_hanging_transactions()
    assert looks == []
    subject.create("__transaction_state", 1, NODE)
    subject.coordinators.end_hanging_transactions()
    assert looks == ["<HangingTransactions open=0>"]
