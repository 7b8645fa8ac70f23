from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.export_json_lines import count_lines, read_lines
from tests.cli.exports import odd_records
from tests.cli.test_export_files import made_file


def test_the_bytes_come_back(tmp_path: Path) -> None:
    records = odd_records(500)
    path = tmp_path / made_file(tmp_path, "jsonl", records).name
    assert list(read_lines(path, "t", 0)) == records
    assert list(read_lines(path, "t", 498)) == records[498:]
    assert list(read_lines(path, "t", 500)) == []
    assert count_lines(path) == 500


def test_each_line_is_an_object_that_a_terminal_does_not_obey(tmp_path: Path) -> None:
    path = tmp_path / made_file(tmp_path, "jsonl", odd_records(100)).name
    text = path.read_text()
    assert [line for line in text.splitlines() if not line.isprintable()] == []
    first = json.loads(text.splitlines()[0])
    assert {name.removesuffix("_base64") for name in first} == {
        "topic", "partition", "offset", "timestamp", "key", "value", "headers", "timestampType"
    }  # fmt: skip


@pytest.mark.parametrize(
    "line", ["x", "{}", "[]", '{"partition": 0, "offset": 0, "timestamp": 0, "key": null, "value": 7, "headers": []}']
)
def test_a_line_that_is_not_a_record(tmp_path: Path, line: str) -> None:
    path = tmp_path / "file"
    path.write_text(f"{line}\n")
    with pytest.raises(ValueError, match="line 1 is not a record"):
        list(read_lines(path, "t", 0))


def test_a_line_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}\n{")
    with pytest.raises(ValueError, match="its last line is cut off"):
        count_lines(path)
