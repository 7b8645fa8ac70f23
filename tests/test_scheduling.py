"""Files stay together, groups as well, and what is slow begins first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scheduling import FileScheduling, slow_first


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("tests/raft/test_log.py::test_append", "tests/raft/test_log.py"),
        ("tests/raft/test_log.py::TestLog::test_append[a::b@c]", "tests/raft/test_log.py"),
        ("tests/spark/sink/test_writers.py::test_append[a@b]@spark", "spark"),
    ],
)
def test_a_piece_is_a_file_or_a_group(name: str, piece: str) -> None:
    assert FileScheduling._split_scope(FileScheduling.__new__(FileScheduling), name) == piece


def test_groups_are_first_and_then_files_with_a_slow_test() -> None:
    def item(file: str, *marks: str) -> Any:
        return SimpleNamespace(path=Path(file), get_closest_marker=lambda name: name if name in marks else None)

    fast, quick_of_slow, slow, grouped = item("a"), item("b"), item("b", "slow"), item("c", "xdist_group")
    items = [fast, quick_of_slow, slow, grouped]
    slow_first(items)
    assert items == [grouped, quick_of_slow, slow, fast]
