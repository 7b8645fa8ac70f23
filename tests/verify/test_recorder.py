"""A recorder writes each line before the operation continues."""

from __future__ import annotations

from pathlib import Path

from barnabas.verify.history import Outcome, Poll, Send, read_history
from barnabas.verify.recorder import Recorder


def test_the_file_is_the_history(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    recorder = Recorder({"seed": 3}, path)
    process = recorder.new_process()
    recorder.record(process, Outcome.INVOKE, "txn", [Send(0, 1), Poll({})], rebalanced=(2,), error="two\nlines")
    recorder.close()
    (op,) = read_history(path)
    assert (op.value, op.rebalanced, op.error) == ((Send(0, 1), Poll({})), frozenset({2}), "two lines")
    assert read_history(path) == recorder.history()


def test_operations_are_numbered_timed_and_counted() -> None:
    ticks = iter([100, 105, 109])
    recorder = Recorder({}, clock=lambda: next(ticks))
    assert [recorder.new_process(), recorder.new_process()] == [0, 1]
    first = recorder.record(0, Outcome.INVOKE, "poll")
    second = recorder.record(0, Outcome.OK, "poll")
    assert [(op.index, op.time_ns) for op in (first, second)] == [(0, 5), (1, 9)]
    assert recorder.counts["poll", Outcome.OK] == 1


def test_a_line_after_the_end_stays_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    recorder = Recorder({}, path)
    recorder.close()
    recorder.close()
    recorder.record(0, Outcome.OK, "poll")
    assert (len(read_history(path)), len(recorder.history())) == (0, 1)
