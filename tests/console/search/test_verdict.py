"""What a search says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.console.search.query import Query
from barnabas.console.search.search import Outcome, Stop
from barnabas.console.search.span import UNKNOWN, PartitionSpan
from barnabas.console.search.verdict import verdict_of
from barnabas.protocol.errors import ErrorCode, error_for


def outcome(*spans: PartitionSpan, **fields: Any) -> Outcome:
    query = Query("t", order="oldest", value_as="json", key_as="text")
    return Outcome(query, bytes(16), fields.pop("stop", Stop.END), list(spans), **fields)


def span(**fields: Any) -> PartitionSpan:
    return PartitionSpan(
        **({"partition": 1, "begin": 10, "end": 20, "stable_end": 20, "held_back": 0, "position": 20} | fields)
    )


def test_complete() -> None:
    found = verdict_of(outcome(span(records=6, control=1)))
    assert found.is_complete
    assert found.sentences == [
        "Complete: all 10 offsets of the range were read: 6 records, 1 control record, 3 offsets without a record, as compaction leaves"
        " them."
    ]
    assert found.data()["empty_offsets"] == 3


def test_an_empty_range() -> None:
    found = verdict_of(outcome(span(begin=20)))
    assert (found.is_complete, found.sentences) == (True, ["The range is empty: there is nothing to read."])


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (outcome(span(position=13, records=3), stop=Stop.TIME), "Read 3 of 10 offsets: 3 records. It stopped because its time was used"),
        (outcome(span(position=13, records=3), stop=Stop.LIMIT), "It stopped because the page is full."),
        (outcome(span(records=5, removed=5)), "5 offsets that retention or an administrator had removed"),
        (outcome(span(records=5, damaged=5), damage="partition 1: bad crc"), "5 offsets in damaged batches, such as partition 1: bad crc."),
        (outcome(span(records=10), unjudged={"": 1}, why_unjudged={"": "x"}), "1 record that the filter cannot be asked about, such as x."),
        (outcome(span(records=10), unjudged={"value": 2}, why_unjudged={"value": "x"}), "value could not be decoded as json, such as x."),
        (outcome(span(records=10), unjudged={"key": 1}), "1 record, because the filter asks for a field of the key, read as text"),
        (outcome(span(records=10), is_deleted=True), "Topic t was deleted"),
        (outcome(span(begin=UNKNOWN, end=UNKNOWN, position=UNKNOWN)), "partition 1 had no leader"),
        (
            outcome(span(position=13), failures={1: error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}),
            "Not read: partition 1 from offset 13: ",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(found: Outcome, sentence: str) -> None:
    verdict = verdict_of(found)
    assert not verdict.is_complete
    assert sentence in " ".join(verdict.sentences)
    assert not any("\n" in each for each in verdict.sentences)


def test_what_read_committed_does_not_show_is_said_too() -> None:
    verdict = verdict_of(outcome(span(records=10, held_back=4), hidden=2))
    assert verdict.is_complete
    said = " ".join(verdict.sentences)
    assert "4 offsets at the end, which open transactions hold back" in said
    assert "Not shown: 2 records of aborted transactions." in said
