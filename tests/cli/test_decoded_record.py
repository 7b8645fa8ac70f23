"""Records of internal topics as objects with fields."""

from __future__ import annotations

import struct

from barnabas.cli.decoded_record import decoded_object
from barnabas.cli.record_format import Shown, json_object
from barnabas.protocol import messages

KEY = struct.pack(">h", 1) + messages.OffsetCommitKey(group="shop", topic="orders", partition=0).encode(0)
VALUE = struct.pack(">h", 1) + messages.OffsetCommitValue(offset=5, metadata="", commit_timestamp=1).encode(1)


def shown(topic: str, key: bytes | None, value: bytes | None) -> Shown:
    return Shown(topic, 7, 0, 0, key, value, [])


def test_a_record_of_an_internal_topic_has_fields() -> None:
    found = decoded_object(shown("__consumer_offsets", KEY, VALUE))
    assert isinstance(found["key"], dict)
    assert isinstance(found["value"], dict)
    assert (found["key"]["type"], found["key"]["group"], found["value"]["offset"]) == ("OffsetCommit", "shop", 5)
    assert decoded_object(shown("__consumer_offsets", KEY, None))["value"] is None


def test_other_records_are_as_json_prints_them() -> None:
    for record in (
        shown("orders", KEY, VALUE),
        shown("__consumer_offsets", b"x", VALUE),
        shown("__consumer_offsets", None, b""),
    ):
        assert decoded_object(record) == json_object(record)
