"""Records of internal topics in fields: those of a broker's own topics, and each type by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.internal_records import decoded_lines
from barnabas.client.admin import Admin, TopicPartition
from barnabas.main import command_group
from barnabas.protocol.messages import (
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.versioned import PREFIX
from tests.cli.test_record_format import RECORD
from tests.cli.test_record_printer import message


def versioned(number: int, record: Any, version: int) -> bytes:
    return PREFIX.pack(number) + bytes(record.encode(version))


def shown(topic: str, key: bytes, value: bytes | None) -> dict[str, Any]:
    """Return the line of a record."""
    found: dict[str, Any] = json.loads(decoded_lines([message(RECORD._replace(topic=topic, key=key, value=value))]))
    return found


def test_a_commit_and_its_tombstone() -> None:
    key = versioned(1, OffsetCommitKey(group="g", topic="t", partition=3), 0)
    value = versioned(4, OffsetCommitValue(offset=7, metadata="m", commit_timestamp=5), 4)
    found = shown("__consumer_offsets", key, value)
    assert found["key"] == {"type": "OffsetCommit", "group": "g", "topic": "t", "partition": 3}
    assert (found["value"]["version"], found["value"]["offset"], found["value"]["metadata"]) == (4, 7, "m")
    assert (found["offset"], found["headers"]) == (
        RECORD.offset,
        [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    )
    assert shown("__consumer_offsets", key, None)["value"] is None


@pytest.mark.parametrize("key", [None, b"", b"\0", PREFIX.pack(99), PREFIX.pack(1) + b"\0\5short"])
def test_what_is_not_known_is_printed_as_it_is(key: bytes | None) -> None:
    printed = json.loads(decoded_lines([message(RECORD._replace(topic="__consumer_offsets", key=key, value=b"\xff"))]))
    assert printed["value_base64"] == "/w=="
    assert json.loads(decoded_lines([message(RECORD)]))["value"] == "value"


def test_the_records_of_a_broker() -> None:
    with barnabas.Broker() as broker:
        broker.create_topic("orders")
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("shop", {TopicPartition("orders", 0): (0, "", -1)})
        line = ["consume", "__consumer_offsets", "-e", "-b", broker.bootstrap_servers]
        printed = CliRunner().invoke(command_group(), line, prog_name="barnabas").stdout.splitlines()
        (record,) = [each for each in map(json.loads, printed) if each["key"]["type"] == "OffsetCommit"]
        assert record["key"] == {"type": "OffsetCommit", "group": "shop", "topic": "orders", "partition": 0}
        assert (record["value"]["version"], record["value"]["offset"]) == (4, 0)
        raw = CliRunner().invoke(command_group(), [*line, "-f", "json"], prog_name="barnabas").stdout.splitlines()
        assert "value_base64" in json.loads(raw[-1]), "json is as for every topic"
