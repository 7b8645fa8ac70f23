"""Dead letters that go back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.console.changes import dead_letters
from barnabas.console.changes.dead_letters import Bounded
from barnabas.retries.headers import FailureHeaders, write_failure
from barnabas.retries.record import Record
from barnabas.retries.redrive import DeadLetter, DeadLetterReader, DeadLetterTopic
from barnabas.retries.redriven import Redriven
from tests.console.buried import bury
from tests.console.forms import carry_out, lines, preview
from tests.console.reading import html, printed
from tests.console.writing import Given, write

CHANGE = "dead-letter-redrive"


def not_redriven(changed: barnabas.Broker, topic: str) -> int:
    (row,) = printed(changed.bootstrap_servers, "dlq", "list", topic)
    return int(row["not_redriven"])


@pytest.mark.slow
def test_so_many_with_each_form_and_each_once(changed: barnabas.Broker, writer: TestClient, audit: Path) -> None:
    bury(changed.bootstrap_servers, "first.dlq", "first", 7, 2)
    assert f"change/{CHANGE}?topic=first.dlq" in html(writer, "dead-letters", topic="first.dlq")
    shown = preview(writer, CHANGE, topic="first.dlq", limit="4")
    assert shown.rows == [{"topic": "first.dlq", "to": "first", "records": 4, "status": "would be sent"}]
    assert "3 dead letters with these filters are left for another redrive" in shown.data["notes"]
    done = carry_out(writer, shown)
    assert done.rows == [{"topic": "first.dlq", "to": "first", "records": 4, "status": "sent"}]
    assert not_redriven(changed, "first.dlq") == 3
    assert carry_out(writer, shown).status == 409
    assert not_redriven(changed, "first.dlq") == 3
    assert lines(audit)[-1]["rows"] == done.rows


@pytest.mark.slow
def test_a_preview_fixes_what_is_sent(changed: barnabas.Broker, writer: TestClient) -> None:
    bootstrap = changed.bootstrap_servers
    bury(bootstrap, "fixed.dlq", "fixed", 4)
    timeouts = {"topic": "fixed.dlq", "filters": "error=TimeoutError"}
    shown = preview(writer, CHANGE, **timeouts)
    assert shown.rows == printed(bootstrap, "dlq", "redrive", "fixed.dlq", "-f", "error=TimeoutError", "--dry-run")
    later = write_failure(FailureHeaders("fixed", 0, 9, error="TimeoutError"))
    write(bootstrap, "fixed.dlq", [Given(b"later", headers=later)])
    assert carry_out(writer, shown).rows[0]["records"] == 2
    shown = preview(writer, CHANGE, **timeouts)
    assert shown.rows[0]["records"] == 1
    printed(bootstrap, "dlq", "redrive", "fixed.dlq", "-f", "offset=4")
    assert "has changed since the preview" in carry_out(writer, shown).error


def test_so_many_and_then_the_same_ones() -> None:
    letters = [
        DeadLetter(Record("x.dlq", number % 2, number // 2, 0, b"k", b""), FailureHeaders(), 0, False)
        for number in range(6)
    ]
    first = Bounded(lambda _: True, 3)
    sent = [each for each in letters if first(each)]
    assert (len(sent), first.left, first.last) == (3, 3, {0: 1, 1: 0})
    again = Bounded(lambda _: True, 3, first.last)
    # Partitions may be read in another order.
    assert [each for each in sorted(letters, key=lambda each: each.record.partition) if again(each)] == sorted(
        sent, key=lambda each: each.record.partition
    )


def test_large_ones_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "KEPT_BYTES_MAX", 10)
    headers = (("name", b"12"), ("null", None))
    letter = DeadLetter(Record("x.dlq", 0, 0, 0, None, b"", headers), FailureHeaders(), 0, False)
    bounded = Bounded(lambda _: True, 3)
    assert bounded(letter)
    assert bounded.letters == [letter]
    assert bounded(letter)
    assert bounded.letters is None


@pytest.mark.slow
def test_a_form_reads_the_topic_once(
    changed: barnabas.Broker, writer: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(changed.bootstrap_servers, "once.dlq", "once", 3)
    reads: list[str] = []
    read = DeadLetterReader.read

    def counted(self: DeadLetterReader, topic: DeadLetterTopic, redriven: Redriven) -> Iterator[DeadLetter]:
        reads.append(topic.name)
        return read(self, topic, redriven)

    monkeypatch.setattr(DeadLetterReader, "read", counted)
    shown = preview(writer, CHANGE, topic="once.dlq", limit="2")
    assert carry_out(writer, shown).rows[0]["records"] == 2
    assert reads == ["once.dlq"] * 2
    shown = preview(writer, CHANGE, topic="once.dlq")
    monkeypatch.setattr(dead_letters, "KEPT_BYTES_MAX", 0)
    assert carry_out(writer, shown).rows[0]["records"] == 1
    assert reads == ["once.dlq"] * 5
    assert not_redriven(changed, "once.dlq") == 0


def test_what_cannot_go_back(changed: barnabas.Broker, writer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(changed.bootstrap_servers, "refused.dlq", "refused", 2)
    for fields, sentence in (
        ({"topic": "absent.dlq"}, "Topic absent.dlq does not exist"),
        ({"filters": "eror=x"}, "is not one of"),
        ({"to": "absent"}, "Topic absent does not exist"),
        ({"limit": "x"}, "The limit is not a whole number"),
        ({"limit": "10001"}, "The limit must be at most 10000"),
    ):
        refused = preview(writer, CHANGE, **{"topic": "refused.dlq", **fields})
        assert refused.status in (400, 409)
        assert sentence in refused.error
    monkeypatch.setattr(dead_letters, "READ_MAX", 1)
    assert "has 2 offsets, and the console reads 1" in preview(writer, CHANGE, topic="refused.dlq").error
