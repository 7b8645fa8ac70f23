"""Offsets in Spark's JSON, and timestamps in their three forms."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.source.offsets import (
    assignment_from_json,
    from_spark,
    missing_partitions,
    offsets_from_json,
    timestamp_ms,
    timestamps_from_json,
    to_spark,
)

NOW_MS = 1_763_712_000_000

# No topic's name begins with ~: what a checkpoint has beside the position does.
topics = st.text(min_size=1, max_size=5).filter(lambda name: not name.startswith("~"))
positions = st.dictionaries(st.tuples(topics, st.integers(0, 1000)), st.integers(0, 2**63 - 1))


@given(positions)
@settings(derandomize=True, deadline=None, max_examples=50)
def test_a_position_survives_spark(position):
    assert from_spark(to_spark(position)) == position


def test_what_a_checkpoint_has_beside_the_position_is_left_out():
    stored = '{"a": {"0": 4}, "~first": {"a": {"0": 1}}, "~ids": {"a": "pS1Cfv5xTVu5e9IDLZ0JZg"}}'
    assert offsets_from_json(stored) == {("a", 0): 4}


def test_spark_gets_sorted_positions():
    assert to_spark({("b", 1): 3, ("a", 10): 1, ("a", 2): 0}) == {"a": {"2": 0, "10": 1}, "b": {"1": 3}}
    assert list(to_spark({("b", 1): 3, ("a", 2): 0})) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"t":[0]}', '{"t":{"x":0}}', '{"t":{"²":0}}', '{"t":{"0":"1"}}', '{"t":{"0":-3}}', '{"t":{"0":1.5}}'],
)
def test_invalid_offsets_are_rejected(text):
    with pytest.raises(ValueError, match=r"Expected e\.g\.") as caught:
        offsets_from_json(text)
    assert str(caught.value).endswith(f"got {text}")


def test_the_smallest_and_the_largest_offset():
    assert offsets_from_json('{"t":{"0":-2,"1":9223372036854775807}}') == {("t", 0): -2, ("t", 1): 2**63 - 1}
    with pytest.raises(ValueError, match=r"Expected e\.g\."):
        offsets_from_json('{"t":{"0":9223372036854775808}}')


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"t":[1]}',
        '{"t":{"x":1}}',
        '{"t":{"²":1}}',
        '{"t":{"0":true}}',
        '{"t":{"0":1.5}}',
        '{"t":{"0":null}}',
    ],
)
def test_invalid_timestamps_per_partition_are_rejected(text):
    with pytest.raises(ValueError, match=r"Expected e\.g\. .*1763712000000") as caught:
        timestamps_from_json(text, NOW_MS)
    assert str(caught.value).endswith(f"got {text}")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"t":0}', '{"t":{"0":1}}', '{"t":[true]}', '{"t":[-1]}', '{"t":["0"]}', '{"t":[1.0]}']
)
def test_invalid_assignments_are_rejected(text):
    with pytest.raises(ValueError, match=r'Expected e\.g\. .*"topicA":\[0,1\]') as caught:
        assignment_from_json(text)
    assert str(caught.value).endswith(f"got {text}")


def test_an_assignment_is_sorted_and_without_duplicates():
    assert assignment_from_json('{"b":[1,0,1],"a":[2],"c":[]}') == [("a", 2), ("b", 0), ("b", 1)]


def test_timestamps_per_partition_may_have_every_form():
    text = '{"t":{"0":1763712000000,"1":"-1h","2":"2026-11-21T08:00:00Z"}}'
    assert timestamps_from_json(text, NOW_MS) == {
        ("t", 0): 1_763_712_000_000,
        ("t", 1): NOW_MS - 3_600_000,
        ("t", 2): 1_795_248_000_000,
    }


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1763712000000", 1_763_712_000_000),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T02:00:00.5+02:00", 500),
        ("1970-01-01T00:00:00Z", 0),
        ("-2h", NOW_MS - 7_200_000),
        ("-10m", NOW_MS - 600_000),
        ("-1d12h", NOW_MS - 129_600_000),
        ("-90S", NOW_MS - 90_000),
        ("-250ms", NOW_MS - 250),
        ("-99999w", 0),
    ],
)
def test_timestamps(text, ms):
    assert timestamp_ms(text, NOW_MS) == ms


def test_a_timestamp_without_a_zone_is_in_utc_wherever_the_driver_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert timestamp_ms("1970-01-01T00:00:01", NOW_MS) == 1_000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "now", "-", "-2", "2h", "-2y", "2026-13-01", "\N{ARABIC-INDIC DIGIT THREE}"])
def test_invalid_timestamps_are_rejected(text):
    with pytest.raises(ValueError, match="is not a valid timestamp"):
        timestamp_ms(text, NOW_MS)


def test_specific_offsets_must_name_every_partition():
    assert missing_partitions([("t", 0), ("t", 1)], {("t", 1): 5, ("t", 0): 1}) is None
    assert missing_partitions([("t", 0), ("t", 1)], {("t", 1): 5}) == (
        "you must specify all TopicPartitions. Use -1 for latest, -2 for earliest, if you don't care. "
        "Specified: [t-1] Assigned: [t-0, t-1]"
    )
