"""A consumer's group metadata, as librdkafka writes it, read for a producer of our own."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from barnabas.verify.transactional_producer import parse_group_metadata


@pytest.mark.parametrize("instance", [None, "me", ""])
def test_what_the_library_writes(instance: str | None) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "orders", "log_level": 0}
    if instance:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    try:
        assert parse_group_metadata(consumer.consumer_group_metadata()) == ("orders", -1, "", instance or None)
    finally:
        consumer.close()


def test_a_member() -> None:
    assert parse_group_metadata(b"CGMDv2:\x05\0\0\0g\0member-1\0\0static\0") == ("g", 5, "member-1", "static")


@pytest.mark.parametrize("metadata", [b"", b"CGMDv1:\0\0\0\0g\0m\0\1", b"CGMDv2:\0"])
def test_something_else(metadata: bytes) -> None:
    with pytest.raises(ValueError):
        parse_group_metadata(metadata)
