"""Which partitions change when something happens to a broker, and the settings that decide their elections."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.config.config_table import config_schema
from barnabas.metadata.batches import Batches
from barnabas.metadata.broker_sessions import BrokerSessions
from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.controller_view import ControllerSettings, ControllerView
from barnabas.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from barnabas.metadata.features_image import ELR_FEATURE, FeaturesImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.partition_leaders import (
    Elections,
    Hosted,
    indexed,
    leads_any,
    on_broker_back,
    on_broker_crashed,
    on_broker_gone,
)
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.protocol import messages

TOPIC_ID = b"a" * 16


def view(
    leader: int,
    isr: tuple[int, ...],
    *,
    fenced: tuple[int, ...] = (),
    leaving: tuple[int, ...] = (),
    elr_level: int = 1,
    configs: dict[tuple[int, str], dict[str, str]] | None = None,
    of_directories: tuple[bytes, ...] = (),
    **fields: Any,
) -> ControllerView:
    """One partition on the brokers 1, 2, 3 and on 4, which is not registered."""
    brokers = {
        i: BrokerRegistration(i, 1, b"i" * 16, (), {}, None, i in fenced, i in leaving, of_directories)
        for i in (1, 2, 3)
    }
    topic = TopicImage("a", TOPIC_ID, {0: PartitionRegistration((1, 2, 3, 4), isr, leader, 0, 0, **fields)})
    image = MetadataImage(
        features=FeaturesImage(33, {ELR_FEATURE: elr_level}),
        cluster=ClusterImage(brokers),
        topics=TopicsImage.of([topic]),
        configs=ConfigurationsImage(configs or {}),
    )
    resolver = ConfigResolver(config_schema(), 1, {}, {})
    settings, quorum = ControllerSettings(1, "cluster"), None
    return ControllerView(image, settings, resolver, 0, random.Random(1), quorum, BrokerSessions(1))  # type: ignore[arg-type]


def changes(batches: Batches) -> list[MetadataRecord]:
    """The records of a change that is small enough for one batch."""
    with pytest.raises(StopIteration) as last:
        next(batches)
    records: list[MetadataRecord] = last.value.value
    return records


@pytest.mark.parametrize(
    ("leader", "isr", "fenced", "new_leader", "new_isr"),
    [
        (1, (1, 2, 3), (), 2, [2, 3]),
        (1, (1, 3, 2), (), 2, [3, 2]),
        (1, (1, 2, 3), (2,), 3, [2, 3]),
        (1, (1, 4, 3), (), 3, [4, 3]),
        (2, (1, 2, 3), (), None, [2, 3]),
        (1, (1, 2), (2,), -1, [2]),
        (1, (1,), (), -1, []),
    ],
)
def test_a_broker_that_is_fenced_leaves_the_isr_and_leads_nothing(
    leader: int, isr: tuple[int, ...], fenced: tuple[int, ...], new_leader: int | None, new_isr: list[int]
) -> None:
    (change,) = changes(on_broker_gone(view(leader, isr, fenced=fenced), 1))
    expected = messages.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=new_isr)
    if new_leader is not None:
        expected.leader = new_leader
    if not new_isr:
        expected.eligible_leader_replicas = expected.last_known_elr = [1]
    assert change == expected


@pytest.mark.parametrize(("leader", "isr"), [(2, (2, 3)), (-1, (2,))])
def test_a_broker_without_a_part_in_a_partition_changes_nothing(leader: int, isr: tuple[int, ...]) -> None:
    one = view(leader, isr, fenced=(2,) if leader < 0 else (), elr=(1,))
    assert changes(on_broker_gone(one, 1)) == []
    assert changes(on_broker_crashed(view(leader, isr, fenced=(2,)), 1)) == []


@pytest.mark.parametrize(
    ("leader", "isr", "elr", "leads"),
    [(-1, (1,), (), True), (-1, (), (1,), True), (-1, (2,), (), False), (2, (1, 2), (), False)],
)
def test_a_broker_that_is_unfenced_leads_what_waits_for_it(
    leader: int, isr: tuple[int, ...], elr: tuple[int, ...], leads: bool
) -> None:
    records = changes(on_broker_back(view(leader, isr, fenced=(1, 2), elr=elr), 1))
    assert [record.leader for record in records] == ([1] if leads else [])  # type: ignore[attr-defined]


def test_a_broker_that_is_leaving_is_not_elected() -> None:
    (change,) = changes(on_broker_gone(view(1, (1, 2, 3), leaving=(2,)), 1))
    assert change.leader == 3  # type: ignore[attr-defined]


def test_after_a_crash_a_replica_is_not_eligible() -> None:
    (change,) = changes(on_broker_crashed(view(-1, (), fenced=(1, 2), elr=(1, 2)), 1))
    assert change.eligible_leader_replicas == [2]  # type: ignore[attr-defined]
    (change,) = changes(on_broker_crashed(view(1, (1,)), 1))
    assert (change.isr, change.leader, change.last_known_elr) == ([], -1, [1])  # type: ignore[attr-defined]
    assert change.eligible_leader_replicas is None  # type: ignore[attr-defined]
    # Without the feature a crash is like any other end.
    (change,) = changes(on_broker_crashed(view(1, (1,), elr_level=0), 1))
    assert (change.isr, change.leader) == (None, -1)  # type: ignore[attr-defined]


def eligible(one: ControllerView) -> list[int] | None:
    (change,) = changes(on_broker_gone(one, 1))
    found: list[int] | None = change.eligible_leader_replicas  # type: ignore[attr-defined]
    return found


def test_min_insync_replicas_of_the_topic_decide_who_is_eligible() -> None:
    assert eligible(view(1, (1, 2))) is None
    assert eligible(view(1, (1, 2), configs={(2, "a"): {"min.insync.replicas": "2"}})) == [1]
    assert eligible(view(1, (1, 2), configs={(4, ""): {"min.insync.replicas": "2"}})) == [1]
    both = {(4, ""): {"min.insync.replicas": "2"}, (2, "a"): {"min.insync.replicas": "1"}}
    assert eligible(view(1, (1, 2), configs=both)) is None
    # More than there are replicas asks for all of them.
    many = {(2, "a"): {"min.insync.replicas": "9"}}
    assert eligible(view(1, (1, 2, 3, 4), configs=many)) == [1]


def test_a_topic_may_allow_unclean_elections() -> None:
    allowed = {(2, "a"): {"unclean.leader.election.enable": "true"}}
    (change,) = changes(on_broker_gone(view(1, (1,), configs=allowed), 1))
    assert (change.leader, change.isr) == (2, [2])  # type: ignore[attr-defined]
    one = view(1, (1,), configs=allowed)
    (at,) = indexed(one, 1)
    assert Elections(one).is_unclean(at.topic)
    assert not Elections(view(1, (1,))).is_unclean(at.topic)
    # A request can ask for another election.
    assert Elections(one).builder(at, Election.ONLINE).build(TOPIC_ID, 0) is None


@pytest.mark.parametrize(
    ("directory", "of_broker", "leads"),
    [
        (b"d" * 16, (b"d" * 16, b"e" * 16), True),
        (b"x" * 16, (b"d" * 16,), False),
        (b"x" * 16, (), True),
        (MIGRATING, (b"d" * 16,), True),
        (UNASSIGNED, (b"d" * 16,), True),
        (LOST, (b"d" * 16,), False),
        (LOST, (), False),
    ],
)
def test_a_replica_leads_only_from_a_directory_that_is_online(
    directory: bytes, of_broker: tuple[bytes, ...], leads: bool
) -> None:
    placed = view(-1, (2,), fenced=(1,), of_directories=of_broker, directories=(directory,) * 4)
    records = changes(on_broker_back(placed, 1))
    assert [record.leader for record in records] == ([2] if leads else [])  # type: ignore[attr-defined]


def test_partitions_of_a_broker_are_walked_in_the_order_in_which_they_came_to_it() -> None:
    one = view(1, (1,))
    b, c = (TopicImage(name, name.encode() * 16, one.image.topics.by_name["a"].partitions) for name in "bc")
    topics = TopicsImage.of([c, b])
    both = one._replace(image=one.image._replace(topics=topics))
    assert [(at.topic.name, at.partition_id) for at in indexed(both, 1)] == [("c", 0), ("b", 0)]
    assert list(indexed(both, 2)) == []
    assert isinstance(next(indexed(both, 1)), Hosted)
    assert leads_any(both, 1)
    assert not leads_any(both, 2)
    assert repr(Elections(both, gone=1)) == "<Elections gone=1 back=-1 crashed=-1>"
