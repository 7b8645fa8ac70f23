"""Every anomaly in a history made by hand that has it, and none in the same history without it."""

from __future__ import annotations

import pytest

from barnabas.verify.verdict import check
from tests.verify.stories import history

CASES = {
    "lost-write": ["p0 ok send s0:1@0 s0:2@1", "p1 ok poll r0:2@1"],
    "lost-write of an unknown send that others saw": [
        "p0 info txn s0:1@0 s1:5@0", "p1 ok txn s0:2@1", "p2 ok poll r0:2@1", "p2 ok poll r1:5@0",
    ],
    "unseen": ["p0 ok send s0:1@0 s0:2@1", "final r0:1@0"],
    "unseen at an unknown offset": ["p0 ok send s0:1@0 s0:2", "final r0:1@0"],
    "aborted-read": ["p0 fail txn s0:1", "p1 ok poll r0:1@0"],
    "aborted-read in the final read": ["p0 fail txn s0:1", "final r0:1@0"],
    "precommitted-read": ["p0 ok txn s0:1@0 r0:1@0"],
    "unwritten-read": ["p0 ok poll r0:1@0"],
    "duplicate": ["p0 ok send s0:1@0", "p1 ok poll r0:1@0,1@4"],
    "duplicate between a send and a poll": ["p0 ok send s0:1@0", "p1 ok poll r0:1@4"],
    "inconsistent-offset": ["p0 ok send s0:1@0", "p0 ok send s0:2@1", "p1 ok poll r0:1@0", "p2 ok poll r0:2@0"],
    "torn-transaction": ["p0 ok txn s0:1@0 s1:2@0", "final r0:1@0", "final 1"],
    "torn-transaction of unknown outcome": ["p0 info txn s0:1 s1:2", "final r0:1@0", "final 1"],
    "int-poll-skip": ["p0 ok send s0:1@0 s0:2@1 s0:3@2", "p1 ok poll r0:1@0,3@2", "final r0:1@0,2@1,3@2"],
    "int-nonmonotonic-poll": ["p0 ok send s0:1@0 s0:2@1", "p1 ok poll r0:2@1 r0:1@0"],
    "poll-skip": [
        "p0 ok send s0:1@0 s0:2@1 s0:3@2", "p1 ok assign 0", "p1 ok poll r0:1@0", "p1 ok poll r0:3@2", "final r0:1@0,2@1,3@2",
    ],
    "nonmonotonic-poll": ["p0 ok send s0:1@0 s0:2@1", "p1 ok assign 0", "p1 ok poll r0:1@0,2@1", "p1 ok poll r0:2@1"],
    "int-nonmonotonic-send": ["p0 ok txn s0:1@1 s0:2@0", "final r0:2@0,1@1"],
    "nonmonotonic-send": ["p0 ok send s0:1@1", "p0 ok send s0:2@0", "final r0:2@0,1@1"],
    "consumed-twice": [
        "p0 ok send s0:1@0", "p1 ok txn r0:1@0 s1:10@0 o:g:0:1", "p2 ok txn r0:1@0 s1:11@1 o:g:0:1", "final r0:1@0",
        "final r1:10@0,11@1",
    ],
    "consumed-twice when the outcome showed later": [
        "p0 ok send s0:1@0", "p1 info txn r0:1@0 s1:10 o:g:0:1", "p2 ok txn r0:1@0 s1:11@1 o:g:0:1", "final r0:1@0",
        "final r1:10@0,11@1",
    ],
    "consumed-never": [
        "p0 ok send s0:1@0 s0:2@1", "p1 ok txn r0:2@1 s1:10@0 o:g:0:2", "final r0:1@0,2@1", "final r1:10@0", "p3 ok committed o:g:0:2",
    ],
    "G1c": ["p0 ok txn s0:1@0 r1:2@0", "p1 ok txn s1:2@0 r0:1@0"],
    "G1c of three": ["p0 ok txn s0:1@0 r2:3@0", "p1 ok txn s1:2@0 r0:1@0", "p2 ok txn s2:3@0 r1:2@0"],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_is_found(name: str) -> None:
    kind = name.split()[0]
    verdict = check(history(*CASES[name]))
    assert kind in verdict.counts(), verdict.counts()
    assert not verdict.valid
    found = next(each for each in verdict.anomalies if each.name == kind)
    assert found.message
    assert all(op.outcome.value != "invoke" for op in found.ops)


LIKE_IT_AND_CLEAN = {
    "read to the end": ["p0 ok send s0:1@0 s0:2@1", "p1 ok poll r0:1@0", "p1 ok poll r0:2@1", "final r0:1@0,2@1"],
    "an aborted transaction that nobody read": ["p0 fail txn s0:1@0", "p0 ok txn s0:2@2", "final r0:2@2"],
    "an unknown transaction that is not there": ["p0 info txn s0:1@0 s1:2@0", "final 0", "final 1"],
    "an unknown transaction that is there": ["p0 info txn s0:1 s1:2", "final r0:1@0", "final r1:2@0"],
    "a transaction read by somebody else": ["p0 ok txn s0:1@0", "p1 ok txn r0:1@0 s0:2@2", "final r0:1@0,2@2"],
    "markers between records": ["p0 ok txn s0:1@0", "p0 ok txn s0:2@2", "p1 ok poll r0:1@0,2@2", "final r0:1@0,2@2"],
    "an unknown plain send of which half is there": ["p0 info send s0:1 s0:2", "final r0:1@0"],
    "a failed operation gives its position back": [
        "p0 ok send s0:1@0 s0:2@1", "p1 ok assign 0", "p1 ok poll r0:1@0", "p1 fail txn r0:2@1 s1:9", "p1 ok txn r0:2@1 s1:10@0",
        "final r0:1@0,2@1", "final r1:10@0",
    ],
    "a newly assigned key begins where it likes": [
        "p0 ok send s0:1@0 s0:2@1", "p1 ok assign 0", "p1 ok poll r0:1@0,2@1", "p1 ok assign 1", "p1 ok assign 0",
        "p1 ok poll r0:1@0", "final r0:1@0,2@1",
    ],
    "a consumer that leaves its group and goes on alone": [
        "p0 ok send s0:1@0 s0:2@1 s0:3@2", "p1 ok subscribe 0", "p1 ok poll r0:1@0", "p1 ok assign 0", "p1 ok poll r0:3@2",
        "final r0:1@0,2@1,3@2",
    ],
    "a rebalance within the operation": [
        "p0 ok send s0:1@0 s0:2@1", "p1 ok poll r0:2@1 r0:1@0 ~0", "final r0:1@0,2@1",
    ],
    "consumed once, aborted once": [
        "p0 ok send s0:1@0", "p1 fail txn r0:1@0 s1:10 o:g:0:1", "p2 ok txn r0:1@0 s1:11@1 o:g:0:1", "final r0:1@0",
        "final r1:11@1", "p3 ok committed o:g:0:1",
    ],
    "two groups consume the same": [
        "p0 ok send s0:1@0", "p1 ok txn r0:1@0 s1:10@0 o:g:0:1", "p2 ok txn r0:1@0 s1:11@1 o:h:0:1", "final r0:1@0", "final r1:10@0,11@1",
    ],
    "perhaps consumed": ["p0 ok send s0:1@0", "p1 info txn r0:1@0 o:g:0:1", "final r0:1@0", "p3 ok committed o:g:0:1"],
    "information goes one way": ["p0 ok txn s0:1@0", "p1 ok txn r0:1@0 s1:2@0", "p2 ok txn r1:2@0 s2:3@0", "final r0:1@0", "final r1:2@0",
                                 "final r2:3@0"],
}  # fmt: skip


@pytest.mark.parametrize("name", LIKE_IT_AND_CLEAN)
def test_nothing_is_found(name: str) -> None:
    verdict = check(history(*LIKE_IT_AND_CLEAN[name]))
    assert verdict.valid, verdict.anomalies
    assert verdict.allowed == ()


ALLOWED = {
    "int-send-skip": ["p0 ok txn s0:1@0 s0:3@2", "p1 ok txn s0:2@1", "final r0:1@0,2@1,3@2"],
    "G0": ["p0 ok txn s0:1@0 s1:4@1", "p1 ok txn s0:2@1 s1:3@0", "final r0:1@0,2@1", "final r1:3@0,4@1"],
    "poll-skip": ["p0 ok send s0:1@0 s0:2@1 s0:3@2", "p1 ok subscribe 0", "p1 ok poll r0:1@0", "p1 ok poll r0:3@2", "final r0:1@0,2@1,3@2"],
    "nonmonotonic-poll": ["p0 ok send s0:1@0", "p1 ok subscribe 0", "p1 ok poll r0:1@0", "p1 ok poll r0:1@0", "final r0:1@0"],
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_what_kafka_permits_is_reported_apart(name: str) -> None:
    verdict = check(history(*ALLOWED[name]))
    assert verdict.valid, verdict.anomalies
    assert name in verdict.allowed_counts()


def test_a_cycle_over_write_order_and_reads_is_permitted() -> None:
    # p1 is after p0 in the log of key 0; p0 read what p1 sent to key 1 (a plain send, visible at once).
    verdict = check(history("p1 ok send s1:9@0 s0:2@1", "p0 ok txn s0:1@0 r1:9@0", "final r0:1@0,2@1", "final r1:9@0"))
    assert verdict.valid, verdict.anomalies
    assert verdict.allowed_counts() == {"G1c-ww": 1}


def test_the_witness_of_a_cycle_names_each_step() -> None:
    verdict = check(history(*CASES["G1c of three"]))
    (cycle,) = (each for each in verdict.anomalies if each.name == "G1c")
    assert (
        cycle.message == "#1 read 2: 3 of #5; #5 read 1: 2 of #3; #3 read 0: 1 of #1"
        or cycle.message.count(" read ") == 3
    )
    assert len(cycle.ops) == 3


def test_one_lost_record_is_one_anomaly() -> None:
    verdict = check(history("p0 ok send s0:1@0 s0:2@1 s0:3@2", "final r0:1@0,3@2"))
    assert [(each.name, each.key, each.detail) for each in verdict.anomalies] == [("lost-write", 0, {"value": 2})]
