"""A run that gets stuck has a verdict all the same."""

from __future__ import annotations

from barnabas.verify.history import History, Outcome, Poll, Send
from barnabas.verify.recorder import Recorder
from barnabas.verify.verdict import check
from tests.verify.run_process import joined, still_open


def stuck_run() -> History:
    recorder = Recorder({}, clock=iter(range(100)).__next__)
    first, second = recorder.new_process(), recorder.new_process()
    recorder.record(first, Outcome.INVOKE, "send", [Send(0, 1)])
    recorder.record(first, Outcome.OK, "send", [Send(0, 1, 0)])
    recorder.record(second, Outcome.INVOKE, "send", [Send(0, 2)])
    return recorder.history()


def last_reads(found: list[tuple[int, int]], *stuck: int) -> History:
    recorder = Recorder({}, clock=iter(range(100)).__next__)
    for each in stuck:
        recorder.record(each, Outcome.INFO, "stuck")
    process = recorder.new_process()
    recorder.record(process, Outcome.OK, "poll", [Poll({0: found})], keys=(0,), final=True)
    return recorder.history()


def test_what_is_open_is_stuck() -> None:
    assert still_open(stuck_run()) == [1]


def test_the_last_reads_follow_what_was_done() -> None:
    whole = joined(stuck_run(), last_reads([(0, 1), (1, 2)], 1))
    assert [op.index for op in whole] == [0, 1, 2, 3, 4]
    assert [op.process for op in whole] == [0, 0, 1, 1, 2]
    assert [op.time_ns for op in whole] == sorted(op.time_ns for op in whole)
    assert check(whole).valid


def test_an_acknowledged_record_that_is_gone_is_found() -> None:
    verdict = check(joined(stuck_run(), last_reads([], 1)))
    assert verdict.counts() == {"unseen": 1}
