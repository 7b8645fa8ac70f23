"""Names of files and directories."""

from __future__ import annotations

import pytest

from barnabas.log import log_files


def test_offset_files() -> None:
    assert log_files.file_name(123, log_files.LOG) == "00000000000000000123.log"
    assert log_files.parse_file_name("00000000000000000123.timeindex") == (123, ".timeindex")
    for name in ("123.log", "00000000000000000123.log.deleted", "leader-epoch-checkpoint", "0000000000000000012a.log"):
        assert log_files.parse_file_name(name) is None


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("orders", None),
        ("orders-x", None),
        ("-0", None),
        ("orders-0.0123-delete", None),
    ],
)
def test_partition_directories(name: str, parsed: tuple[str, int] | None) -> None:
    assert log_files.parse_partition_dir_name(name) == parsed
    if parsed is not None:
        assert log_files.partition_dir_name(*parsed) == name
