"""From one image to another: what the later one lacks is deleted, and what did not change is not mentioned."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.image_difference import difference
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from tests.metadata.test_delta import IDS, record_lists, replay


@settings(derandomize=True, deadline=None, max_examples=150)
@given(record_lists(), st.integers(0, 40))
def test_the_difference_makes_the_later_image(records: list[MetadataRecord], at: int) -> None:
    old, new = replay(MetadataImage(), records[:at]), replay(MetadataImage(), records)
    assert difference(old, new).apply(new.provenance) == new


def partition(topic_id: bytes, index: int, leader: int = 1) -> MetadataRecord:
    return messages.PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=leader)


def limit(key: str, user: str) -> MetadataRecord:
    entity = [messages.ClientQuotaRecord.EntityData(entity_type="user", entity_name=user)]
    return messages.ClientQuotaRecord(entity=entity, key=key, value=5.0)


def everything(mark: str) -> list[MetadataRecord]:
    """One of each thing that an image holds, under names with this mark."""
    number = 1 + "abc".index(mark)
    topic_id = IDS[number]
    return [
        messages.FeatureLevelRecord(name=f"{mark}.version", feature_level=1),
        messages.RegisterBrokerRecord(broker_id=number, incarnation_id=topic_id, broker_epoch=7),
        messages.RegisterControllerRecord(controller_id=number, incarnation_id=topic_id),
        messages.TopicRecord(name=mark, topic_id=topic_id),
        partition(topic_id, 0),
        messages.ConfigRecord(resource_type=2, resource_name=mark, name="retention.ms", value="5"),
        limit("producer_byte_rate", mark),
        messages.AccessControlEntryRecord(id=topic_id, resource_name=mark, principal="User:x", host="*"),
        messages.UserScramCredentialRecord(name=mark, mechanism=1, iterations=4096),
        messages.DelegationTokenRecord(token_id=mark, owner="o", requester="o"),
    ]


START: list[MetadataRecord] = [messages.FeatureLevelRecord(name="metadata.version", feature_level=33)]


def test_what_a_snapshot_lacks_is_deleted() -> None:
    old = replay(MetadataImage(), [*START, *everything("a"), *everything("b")])
    new = replay(MetadataImage(), [*START, *everything("b"), *everything("c")])
    delta = difference(old, new)
    assert delta.apply(new.provenance) == new
    assert delta.features is not None
    assert delta.features.changed == {"c.version": 1, "a.version": 0}
    assert delta.cluster is not None
    assert set(delta.cluster.changed_brokers) == {1, 3}
    assert delta.cluster.changed_brokers[1] is None
    assert delta.topics is not None
    assert [topic.name for topic in delta.topics.deleted.values()] == ["a"]
    assert [topic.name for topic in delta.topics.created()] == ["c"]
    assert set(delta.topics.changed) == {IDS[3]}
    assert delta.configs is not None
    assert delta.configs.changed == {(2, "c"): {"retention.ms": "5"}, (2, "a"): {"retention.ms": None}}


def test_equal_images_have_no_difference() -> None:
    records = [*START, *everything("a")]
    delta = difference(replay(MetadataImage(), records), replay(MetadataImage(), records))
    assert repr(delta) == "<MetadataDelta since=-1 changed=[]>"


def test_a_topic_that_was_deleted_and_created_again_is_another_topic() -> None:
    old = replay(MetadataImage(), [*START, messages.TopicRecord(name="t", topic_id=IDS[0]), partition(IDS[0], 0)])
    new = replay(MetadataImage(), [*START, messages.TopicRecord(name="t", topic_id=IDS[1]), partition(IDS[1], 0)])
    delta = difference(old, new)
    assert delta.topics is not None
    assert (list(delta.topics.deleted), list(delta.topics.changed)) == ([IDS[0]], [IDS[1]])
    assert delta.apply() == new


def test_only_the_partitions_that_changed_are_named() -> None:
    topic = [messages.TopicRecord(name="t", topic_id=IDS[0]), partition(IDS[0], 0), partition(IDS[0], 1)]
    old = replay(MetadataImage(), [*START, *topic])
    new = replay(old, [partition(IDS[0], 1, leader=2), partition(IDS[0], 2)])
    delta = difference(old, new)
    assert delta.topics is not None
    assert list(delta.topics.changed[IDS[0]].partition_changes) == [1, 2]
    assert not delta.topics.created()


def test_later_records_follow_on_a_difference() -> None:
    topic = [messages.TopicRecord(name="t", topic_id=IDS[0]), partition(IDS[0], 0)]
    old = replay(MetadataImage(), [*START, *everything("a"), *topic])
    delta = difference(old, replay(MetadataImage(), [*START, *topic]))
    delta.replay(messages.PartitionChangeRecord(partition_id=0, topic_id=IDS[0], leader=2))
    delta.replay(messages.TopicRecord(name="a", topic_id=IDS[3]))
    image = delta.apply()
    assert image.topics.by_name["t"].partitions[0].leader == 2
    assert image.topics.by_name["a"].topic_id == IDS[3]
