"""Formats that fit a topic, before a filter asks about its records."""

from __future__ import annotations

import msgpack
import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.search.guess import Guess, guessed
from barnabas.console.search.query import Query
from barnabas.console.search.search import Limits, run
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoder import Decoder
from tests.console.writing import Given, create, write


def test_a_filter_sees_records_in_the_format_that_fits(records_broker: barnabas.Broker) -> None:
    create(records_broker.bootstrap_servers, "packed")
    write(
        records_broker.bootstrap_servers, "packed", [Given(msgpack.packb({"n": each}), b"\xff") for each in range(30)]
    )
    query = Query("packed", filter="value.n == 7")
    with Admin(records_broker.bootstrap_servers) as admin:
        found = guessed(admin, query, Decoder(), 0)
        assert (found.query.key_as, found.query.value_as) == ("hex", "msgpack")
        assert found.sentence() == "Guessed from 20 records: values are msgpack, keys are hex."
        assert [each.record.offset for each in run(admin, found.query, Decoder(), 0).found] == [7]
        chosen = Query("packed", key_as="text", value_as="hex")
        assert guessed(admin, chosen, Decoder(), 0) == Guess(chosen)


def test_no_record_in_time_is_no_guess(records_broker: barnabas.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    create(records_broker.bootstrap_servers, "slow")
    write(records_broker.bootstrap_servers, "slow", [Given(b'{"n": 1}', b"k"), Given(b"plain", b"k")])
    monkeypatch.setattr("barnabas.console.search.guess.LIMITS", Limits(seconds=0.0))
    query = Query("slow", filter="value.n == 1", key_as="text")
    with Admin(records_broker.bootstrap_servers) as admin:
        found = guessed(admin, query, Decoder(), 0)
        assert found.query == query
        assert (found.records, found.values, found.keys) == (0, 0, None)
        assert found.sentence() == (
            "No format was guessed, because the cluster gave no record within 0 seconds: choose it under “Values are” (value_as)."
        )
        verdict = verdict_of(run(admin, found.query, Decoder(), 0))
        assert not verdict.is_complete
        assert "Not judged: 2 records whose value was not decoded, since its format was not guessed" in str(verdict)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Guess(Query("t")), ""),
        (Guess(Query("t"), 0, 0, 0), ""),
        (Guess(Query("t", value_as="json"), 20, None, 2), "Guessed from 20 records: values are json (2 of them)."),
        (Guess(Query("t", value_as="json"), 1, 0, 1), "Guessed from 1 record: values are json, no key to guess from."),
    ],
)
def test_what_is_said_of_a_guess(found: Guess, sentence: str) -> None:
    assert found.sentence() == sentence
