"""A history survives its file, and another file is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.verify.history import parse_history, read_history, to_line, write_history
from tests.verify import model
from tests.verify.stories import history


def test_round_trip(tmp_path: Path) -> None:
    made = model.run(7, steps=500)
    write_history(tmp_path / "history.jsonl", made)
    assert read_history(tmp_path / "history.jsonl") == made


def test_the_line_of_a_transaction() -> None:
    _, op = history("p2 info txn s0:5@7 r1:3@4 o:g:1:5")
    assert to_line(op) == (
        '{"time":1000,"process":2,"type":"info","f":"txn",'
        '"value":[["send",0,5,7],["poll",[[1,[[4,3]]]]],["offsets","g",[[1,5]]]]}'
    )
    assert str(op) == "#1 0.000s p2 info txn send(0: 5@7) poll(1: 3@4) offsets(g: {1: 5})"


def test_a_torn_last_line_is_left_out() -> None:
    lines = ['{"barnabas-verify": 1}\n', '{"time":1,"process":0,"type":"ok","f":"poll"}\n', '{"time":2,"pro']
    assert len(parse_history(lines)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no json\n"],
        ['{"barnabas-verify": 2}\n'],
        ['{"seed": 1}\n'],
        ["[]\n"],
        ['{"barnabas-verify": 1}\n', '{"time":1,"process":0,"type":"maybe","f":"poll"}\n'],
        ['{"barnabas-verify": 1}\n', '{"time":1,"process":0,"type":"ok","f":"poll","value":[["peek"]]}\n'],
        ['{"barnabas-verify": 1}\n', '{"process":0,"type":"ok","f":"poll"}\n'],
    ],
)
def test_another_file_is_rejected(lines: list[str]) -> None:
    with pytest.raises(ValueError):
        parse_history(lines)
