"""A directory as it is: its identity, the formats of its records, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

from barnabas.adopt.given_directory import read_directory
from barnabas.log.meta_properties import META_PROPERTIES, MetaProperties

META = MetaProperties("4L6g3nShT-eMCtK--X86sw", 2, "9p2Wl1tXSSCgDZ1NvHvHkA")


def batch(magic: int) -> bytes:
    return bytes(8) + (49).to_bytes(4) + bytes(4) + bytes([magic]) + bytes(44)


def test_one_on_another_machine(tmp_path: Path) -> None:
    assert not read_directory(str(tmp_path / "away")).is_here


def test_identity_and_formats(tmp_path: Path) -> None:
    (tmp_path / META_PROPERTIES).write_bytes(META.encode())
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (tmp_path / "not a partition").mkdir()
    for number, content in enumerate([batch(1), batch(2), b"", bytes(4096), batch(0)]):
        (partition / f"{number:020}.log").write_bytes(content)
    found = read_directory(str(tmp_path))
    assert (found.meta, found.unreadable, found.segments) == (META, "", 3)
    assert [Path(each).name for each in found.old_segments] == [f"{0:020}.log", f"{4:020}.log"]
    assert 0 < found.free_bytes <= found.total_bytes


def test_one_without_identity_and_one_that_is_broken(tmp_path: Path) -> None:
    assert read_directory(str(tmp_path)).meta is None
    (tmp_path / META_PROPERTIES).write_text("version=7\n")
    found = read_directory(str(tmp_path))
    assert (found.meta, "version 7" in found.unreadable) == (None, True)
