"""A user's function that changes records: where it is found, and what its mistakes become."""

from pathlib import Path

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.record_rewrite import load_rewrite
from barnabas.retries.record import Record

RECORD = Record("orders", 3, 17, 0, b"k", b"v")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "mask.py"
    path.write_text("def same(record): return record\ndef none(record): pass\ndef text(record): return 'x'\n")
    return path


def test_what_a_function_returns(script: Path) -> None:
    assert load_rewrite(f"{script}:same")(RECORD) is RECORD
    assert load_rewrite(f"{script}:none")(RECORD) is None
    with pytest.raises(Failure, match=r"text returned a str, not a Record or None for orders-3@17"):
        load_rewrite(f"{script}:text")(RECORD)


def test_what_cannot_be_loaded(script: Path) -> None:
    with pytest.raises(click.BadParameter, match=r"has no function sane; did you mean same\?"):
        load_rewrite(f"{script}:sane")
    with pytest.raises(click.BadParameter, match=r"is not file.py:function"):
        load_rewrite("mask")
    with pytest.raises(click.BadParameter, match="there is no Python file"):
        load_rewrite(f"{script}x:same")
    script.write_text("1 / 0")
    with pytest.raises(Failure, match="cannot be imported: ZeroDivisionError: division by zero"):
        load_rewrite(f"{script}:same")
