"""The order of a hash map's keys, and what is listed in it: compared with what a JVM and Apache Kafka 4.3.1 answered."""

from __future__ import annotations

import pytest

from barnabas.config.config_table import config_schema
from barnabas.metadata.client_quotas_image import ClientQuotasDelta, ClientQuotasImage, QuotaEntity
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.hash_order import capacity_for, in_hash_order
from barnabas.protocol.messages import ClientQuotaRecord
from barnabas.protocol.partition_for import string_hash

LIMITS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0x80000000), ("\U0001f600", 1772899)],
)
def test_strings_hash_as_in_java(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_a_table_begins_with_a_power_of_two() -> None:
    assert [capacity_for(expected) for expected in (0, 1, 2, 3, 4, 5, 12, 17)] == [1, 1, 2, 4, 4, 8, 16, 32]


def test_keys_of_one_bucket_keep_the_order_of_insertion() -> None:
    assert in_hash_order([17, 33, 1, 16, 2], lambda number: number) == [16, 17, 33, 1, 2]


def test_a_table_grows_when_it_is_three_quarters_full() -> None:
    assert in_hash_order([17, *range(11)], lambda number: number) == [0, 17, *range(1, 11)]
    assert in_hash_order([17, *range(12)], lambda number: number) == [*range(12), 17]


def test_high_bits_count_too() -> None:
    assert in_hash_order([0x30000, 2, 1], lambda number: number) == [1, 2, 0x30000]


def test_topic_settings_are_listed_in_kafkas_order() -> None:
    names = config_schema().listed(ConfigResourceType.TOPIC)
    kafka = [
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
        "remote.storage.enable",
        "min.insync.replicas",
        "segment.jitter.ms",
        "remote.log.copy.disable",
        "local.retention.ms",
        "cleanup.policy",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "compression.lz4.level",
        "segment.bytes",
        "retention.ms",
        "compression.gzip.level",
        "flush.messages",
        "compression.zstd.level",
        "max.compaction.lag.ms",
        "file.delete.delay.ms",
        "max.message.bytes",
        "min.compaction.lag.ms",
        "message.timestamp.type",
        "local.retention.bytes",
        "preallocate",
        "index.interval.bytes",
        "min.cleanable.dirty.ratio",
        "unclean.leader.election.enable",
        "retention.bytes",
        "delete.retention.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "segment.ms",
        "segment.index.bytes",
    ]
    # Later versions define more.
    assert [name for name in names if name in kafka] == kafka


def replayed(image: ClientQuotasImage, *changes: tuple[QuotaEntity, str, float | None]) -> ClientQuotasImage:
    delta = ClientQuotasDelta(image)
    for entity, key, value in changes:
        parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        delta.replay(ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None))
    return delta.apply()


def test_limits_of_an_entity_are_in_kafkas_order() -> None:
    entity = (("client-id", "Client1"), ("user", "User1"))
    image = replayed(ClientQuotasImage(), *((entity, key, 1000.0) for key in LIMITS))
    assert list(image.entities[entity]) == ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]
    image = replayed(image, (entity, "consumer_byte_rate", None), (entity, "producer_byte_rate", 5.0))
    assert dict(image.entities[entity]) == {"request_percentage": 1000.0, "producer_byte_rate": 5.0}


def test_entities_are_in_kafkas_order() -> None:
    user, both = (("user", "User1"),), (("client-id", "Client1"), ("user", "User1"))
    others = [(("client-id", name),) for name in ("a", "b", "c")]
    # In a table of four they share a bucket, in one of eight they do not.
    image = replayed(replayed(ClientQuotasImage(), (both, LIMITS[0], 1.0)), (user, LIMITS[0], 1.0))
    assert list(image.entities) == [both, user]
    image = replayed(image, *((other, LIMITS[0], 1.0) for other in others))
    assert [entity for entity in image.entities if entity not in others] == [user, both]
    assert list(replayed(image, *((entity, LIMITS[0], None) for entity in (user, *others))).entities) == [both]
