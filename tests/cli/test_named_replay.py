"""What a replay's name stands for, and the line that goes on with it."""

from __future__ import annotations

from barnabas.cli.named_replay import Choice, default_name, line_of, losses
from barnabas.client.admin import TopicPartition
from barnabas.retries.replayed import Progress


def progress(name: str, source: str = "orders") -> Progress:
    choice = Choice("-1h", "release", ("value=a b", "key=k"), "m.py:f").text()
    return Progress(name, source, "1", "copy", "2", choice, {0: (2, 5), 1: (3, 3)})


def test_the_line_that_goes_on() -> None:
    options = "--from -1h --until release --filter key=k --filter 'value=a b' --rewrite m.py:f --to copy"
    assert line_of(progress(default_name("orders", "copy"))) == f"barnabas replay orders {options}"
    assert line_of(progress("again")) == f"barnabas replay orders {options} --name again"
    assert line_of(progress("x", "-orders")) == f"barnabas replay {options} --name x -- -orders"


def test_what_is_lost() -> None:
    first, second = (TopicPartition("orders", each) for each in (0, 1))
    assert losses(progress("x"), {first: (4, 9), second: (9, 9)}) == ["partition orders-0: offsets 2 to 3 are deleted"]
    assert losses(progress("x"), {first: (2, 9), second: (None, None)}) == []
