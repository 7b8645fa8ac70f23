"""What the checkpoint has beside a position survives it, and what is not there is not needed."""

from __future__ import annotations

import json

import pytest

from barnabas.spark.source.stored_offset import StoredOffset

IDS = {"a": "pS1Cfv5xTVu5e9IDLZ0JZg", "b": "AAAAAAAAAAAAAAAAAAAAAQ"}


def test_an_offset_survives_the_checkpoint():
    offset = StoredOffset({("a", 0): 42, ("b", 1): 40}, {("b", 1): 0}, IDS)
    assert StoredOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_its_form():
    assert StoredOffset({("a", 1): 2, ("a", 0): 1}, {("a", 1): 0}, IDS).to_json() == {
        "a": {"0": 1, "1": 2},
        "~first": {"a": {"1": 0}},
        "~ids": {"a": IDS["a"]},
    }


def test_equal_offsets_are_equal_text():
    one = StoredOffset({("a", 0): 1, ("b", 0): 2}, topic_ids=IDS)
    other = StoredOffset({("b", 0): 2, ("a", 0): 1}, topic_ids=dict(reversed(IDS.items())))
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())


def test_a_position_alone():
    assert StoredOffset.from_json({"a": {"0": 1}}) == StoredOffset({("a", 0): 1})


@pytest.mark.parametrize(
    "stored",
    [
        5,
        [1, 2],
        {"logOffset": 3},
        {"a": {"0": "x"}},
        {"a": {"x": 1}},
        {"a": {"0": 1}, "~ids": 5},
        {"a": 1, "~first": 2},
    ],
)
def test_what_another_source_stored(stored):
    with pytest.raises(
        ValueError, match=r"the checkpoint is of a query with another source: .*Use the checkpointLocation"
    ):
        StoredOffset.from_json(stored)


def test_a_key_of_a_newer_version():
    with pytest.raises(ValueError, match=r"of a newer version of barnabas: its offset has ~later.*Install the newer"):
        StoredOffset.from_json({"a": {"0": 1}, "~later": ["?"]})
