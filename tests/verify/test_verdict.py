"""A verdict: what fails a run, what Kafka permits, and the numbers of the run."""

from __future__ import annotations

import dataclasses

from barnabas.verify.anomalies import EXAMPLES, Anomaly
from barnabas.verify.history import History
from barnabas.verify.verdict import Verdict, check, rate, standstill
from tests.verify.stories import history


def test_a_clean_history_is_valid() -> None:
    verdict = check(history("p0 ok send s0:1@0", "p1 ok poll r0:1@0", "final r0:1@0"))
    assert verdict.valid
    assert (verdict.statistics["acknowledged"], verdict.statistics["read"]) == (1, 2)
    assert verdict.statistics["operations"] == {"poll": {"ok": 2}, "send": {"ok": 1}}


def test_what_kafka_permits_is_reported_and_does_not_fail_the_run() -> None:
    verdict = check(history("p0 ok txn s0:1@0 s0:3@2", "p1 ok send s0:2@1", "final r0:1@0,2@1,3@2"))
    assert verdict.valid
    assert set(verdict.allowed_counts()) == {"int-send-skip", "G0"}


def test_an_anomaly_fails_the_run() -> None:
    verdict = check(history("p0 fail txn s0:1", "final r0:1@0"))
    assert not verdict.valid
    assert verdict.counts() == {"aborted-read": 1}
    assert verdict.as_json()["examples"][0]["name"] == "aborted-read"


def test_examples_of_each_kind_are_bounded() -> None:
    many = tuple(Anomaly(name, 0, "m") for name in ("a", "b") for _ in range(EXAMPLES + 1))
    verdict = Verdict(many, (), {})
    assert [each.name for each in verdict.examples(2)] == ["a", "a", "b", "b"]
    assert len(verdict.as_json()["examples"]) == 2 * EXAMPLES
    assert verdict.counts() == {"a": EXAMPLES + 1, "b": EXAMPLES + 1}


def test_the_longest_standstill_is_between_successes() -> None:
    made = history("p0 ok poll", "p0 info poll", "p0 ok poll")
    seconds = {1: 1, 3: 4, 5: 6}
    ops = [dataclasses.replace(op, time_ns=seconds.get(op.index, 0) * 10**9) for op in made if op.index in seconds]
    assert standstill(ops) == 5
    assert rate(ops, 4) == 0.5
    assert rate([], 0) == 0
    assert check(History(())).statistics["longest_standstill_seconds"] == 0
