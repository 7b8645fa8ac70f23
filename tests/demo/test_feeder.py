"""Order lines are read from a file or generated; a file without order lines is rejected."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from barnabas.demo.feeder import Feed, FeedError, read_lines
from barnabas.demo.generator import COLUMNS, generate_lines

HEADER = ",".join(COLUMNS)
TEXT = f'{HEADER}\n1,2,"A, B",3,2010-12-01 08:26:00,4,,UK\n5,6\n'


@pytest.mark.parametrize("name", ["orders.csv", "orders.csv.gz"])
def test_lines_are_read_from_a_file(tmp_path: Path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    assert list(read_lines(Feed(path))) == [["1", "2", "A, B", "3", "2010-12-01 08:26:00", "4", "", "UK"], ["5", "6"]]
    assert len(list(read_lines(Feed(path, rows=1)))) == 1


def test_without_a_file_the_lines_are_generated(tmp_path):
    assert list(read_lines(Feed(rows=7, seed=2))) == list(generate_lines(7, seed=2))


@pytest.mark.parametrize("content", [b"", b"a,b,c\n1,2,3\n", b"\xff\xfe\x00"])
def test_a_file_without_order_lines_is_rejected(tmp_path, content):
    path = tmp_path / "orders.csv"
    path.write_bytes(content)
    with pytest.raises(FeedError, match=r"is not a file of order lines|cannot read"):
        list(read_lines(Feed(path)))


def test_a_gz_file_that_is_not_compressed_is_rejected(tmp_path):
    path = tmp_path / "orders.csv.gz"
    path.write_text(TEXT)
    with pytest.raises(FeedError, match="cannot read"):
        list(read_lines(Feed(path)))
