"""What changes between a topic and the file, without a broker."""

from __future__ import annotations

import pytest

from barnabas.cli.few_replicas import InSync
from barnabas.cli.topic_changes import Action, Change, Found, changes_of, created, in_sync_of, obstacles
from barnabas.cli.wanted_topics import WantedTopic
from barnabas.client.admin import ConfigEntry, ConfigSource, PartitionMetadata, TopicMetadata
from barnabas.client.configs import ConfigSynonym
from barnabas.client.reassignments import Reassignment
from barnabas.protocol.primitives import ZERO_UUID

OWN, DEFAULT = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG


def entry(name: str, value: str, kind: str = "string", source: ConfigSource = OWN, below: str = "d") -> ConfigEntry:
    synonyms = [ConfigSynonym(name, value, source), ConfigSynonym(f"log.{name}", below, DEFAULT)]
    return ConfigEntry(name, value, source, False, False, kind, synonyms, None)


def topic(
    *replicas: list[int], entries: tuple[ConfigEntry, ...] = (), moving: dict[int, Reassignment] | None = None
) -> Found:
    partitions = [PartitionMetadata(at, each[0], 0, each, each, []) for at, each in enumerate(replicas)]
    return Found(TopicMetadata("t", ZERO_UUID, False, partitions), entries, moving or {})


def test_a_new_topic() -> None:
    assert created(WantedTopic("t", configs={"retention.ms": "1"}), 3, -1) == [
        Change("t", Action.CREATE, "partitions", None, "3"),
        Change("t", Action.CREATE, "replication-factor", None, None),
        Change("t", Action.CREATE, "retention.ms", None, "1"),
    ]


def test_how_many_replicas_will_have_to_be_in_sync() -> None:
    name = "min.insync.replicas"
    own, brokers = entry(name, "3", below="2"), entry(name, "1", source=DEFAULT)
    for wanted, entries, min_isr in (
        ({name: "4"}, (own,), "4"),
        ({}, (own,), "2"),
        ({}, (brokers,), "1"),
        ({}, (), None),
    ):
        assert in_sync_of(WantedTopic("t", configs=wanted), topic([1, 2], [1, 2, 3], entries=entries)) == InSync(
            "t", 2, min_isr
        )


def test_growth_settings_and_what_goes_back() -> None:
    there = topic(
        [1], [1], entries=(entry("a", "1"), entry("b", "1", source=DEFAULT), entry("c", "1"), entry("barnabas.ordered.growth", ""))
    )  # fmt: skip
    wanted = WantedTopic("t", 3, configs={"a": "2", "b": "1", "unheard": "x"})
    assert changes_of(wanted, there) == [
        Change("t", Action.GROW, "partitions", "2", "3"),
        Change("t", Action.SET, "a", "1", "2"),
        Change("t", Action.SET, "b", "1", "1"),  # of the brokers; from now on of the topic
        Change("t", Action.SET, "unheard", None, "x"),
        Change("t", Action.DEFAULT, "c", "1", "d"),
    ]


@pytest.mark.parametrize(
    ("kind", "now", "wanted", "same"),
    [
        ("list", "compact,delete", "compact, delete", True),
        ("list", "compact,delete", "delete,compact", False),
        ("boolean", "true", "True", True),
        ("long", "1000", "+1000", True),
        ("long", "1000", "much", False),
        ("double", "0.5", "0.50", True),
        ("string", "zstd", "ZSTD", False),
    ],
)
def test_two_texts_of_one_value(kind: str, now: str, wanted: str, same: bool) -> None:
    found = changes_of(WantedTopic("t", configs={"x": wanted}), topic([1], entries=(entry("x", now, kind),)))
    assert (found == []) is same


def said(wanted: WantedTopic, there: Found) -> list[str]:
    return [each.format_message() for each in obstacles(wanted, there)]


def test_what_a_topic_cannot_become() -> None:
    there = topic([1, 2], [2, 1])
    assert said(WantedTopic("t", 2, 2), there) == said(WantedTopic("t"), there) == []
    assert said(WantedTopic("t", 1), there) == [
        "topic t has 2 partitions, and the file wants 1: partitions cannot be taken away (write 2, or create a topic of another"
        " name and send it the records: `barnabas replay t --from start --to TOPIC`)"
    ]
    assert said(WantedTopic("t", None, 3), there) == [
        "topic t has 2 replicas, and the file wants 3 (`barnabas cluster move t:0 --to BROKER,…` does it, for each partition)"
    ]
    assert said(WantedTopic("t", None, 2), topic([1, 2], [1]))[0].startswith(
        "topic t has 1 replica of partition 1, and the file wants 2"
    )
    assert said(WantedTopic("t", replicas=((1, 2), (1, 2), (3, 1))), there) == [
        "partition t-1 is on brokers 2,1, and the file wants brokers 1,2 (`barnabas cluster move t:1 --to 1,2` moves it)"
    ]


def test_replicas_that_move_count_where_they_go() -> None:
    moving = topic([3, 1, 2], moving={0: Reassignment([3, 1, 2], [3], [1])})
    assert said(WantedTopic("t", replicas=((3, 2),)), moving) == []


def test_growth_in_order_is_another_command() -> None:
    grown = topic([1], entries=(entry("barnabas.ordered.growth", "1>2"),))
    assert said(WantedTopic("t", 2), grown) == [
        "topic t has grown in the order of its keys: more partitions without an order would end that"
        " (`barnabas topic grow t -p 2 --ordered` grows it first)"
    ]
    assert said(WantedTopic("t", 1), grown) == []
