"""What `bench.choices` measures, on a small scale, and the tables and the picture that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.choice_chart import steps
from bench.choice_load import commit, fill, follow, read
from bench.choice_load import write as write_records
from bench.choice_tables import both_sides, curves, log, scaling, write_tables
from bench.choices import TABLES, rows
from bench.codecs import write
from bench.long_log import drop_pages
from bench.pieces import Pieces, Range
from bench.report import OURS, THEIRS

import barnabas
from bench import long_log


@pytest.fixture
def pieces(tmp_path: Path) -> Pieces:
    found = Pieces(tmp_path / "pieces.json")
    for side, rate in ((OURS, 300.0), (THEIRS, 100.0)):
        for run in (0, 1, 2):
            found.add("small", "3, one producer, acks=1", side, {"records/s": rate + run})
        for nodes in (1, 3):
            for count in (1, 4, 16, 64):
                found.add("scaling", f"{nodes}, {count}", side, {"MB/s": rate / nodes})
    found.add("log", "30", OURS, {"written MB/s": 250.0, "killed at rest: answers s": 0.25})
    found.add("log", "3", OURS, {"written MB/s": 251.0, "killed at rest: answers s": 0.5})
    return found


def test_runs_are_kept_in_the_file_and_join_those_of_another_day(pieces: Pieces) -> None:
    again = Pieces(pieces.path)
    row = "3, one producer, acks=1"
    again.add("small", row, OURS, {"records/s": 1000.0})
    assert Pieces(pieces.path).range("small", row, OURS, "records/s") == Range(301.5, 300.0, 1000.0, 4)
    again.forget("small", row, OURS)
    assert Pieces(pieces.path).range("small", row, OURS, "records/s") is None
    assert Pieces(pieces.path).range("small", row, THEIRS, "records/s") == Range(101.0, 100.0, 102.0, 3)


def test_a_cell_is_the_median_with_least_and_greatest(pieces: Pieces) -> None:
    assert both_sides(pieces, "small").splitlines()[2:] == [
        "| 3 | one producer, acks=1 | barnabas | 301 (300 to 302) | – | – |",
        "| 3 | one producer, acks=1 | Apache Kafka | 101 (100 to 102) | – | – |",
    ]


def test_scaling_has_a_column_for_each_cluster_that_was_measured(pieces: Pieces) -> None:
    first, _, one, two, *_ = scaling(pieces).splitlines()
    assert first == (
        "| partitions | barnabas, 1 node | barnabas, 3 nodes | Apache Kafka, 1 node | Apache Kafka, 3 nodes |"
    )
    assert one == "| 1 | 300 | 100 | 100 | 33.3 |"
    assert two == "| 2 | – | – | – | – |"


def test_a_long_log_has_its_sizes_in_order(pieces: Pieces) -> None:
    lines = log(pieces).splitlines()
    assert lines[0] == "| figure | barnabas, 3 GB | barnabas, 30 GB |"
    assert "| killed at rest: answers s | 0.5 | 0.25 |" in lines


def test_the_page_keeps_its_words_and_gets_its_tables(pieces: Pieces, tmp_path: Path) -> None:
    page = tmp_path / "choices.md"
    page.write_text("".join(f"before {each}\n<!-- {each} -->\nold\n<!-- end of {each} -->\n" for each in TABLES))
    write_tables(page, pieces)
    once = page.read_text()
    assert [once.count(f"before {each}\n") for each in TABLES] == [1] * len(TABLES)
    assert "| 3 | one producer, acks=1 | barnabas |" in once
    assert once.count("old") == 4, "nothing was measured of acks, losses, transactions, one partition"
    assert "Runs of each row: 3; " in once
    picture = (tmp_path / "choices-scaling.svg").read_text()
    assert "barnabas, 3 nodes" in picture
    assert "Apache Kafka, 1 node<" in picture
    assert "often shown" in picture


def test_marks_are_where_they_were(pieces: Pieces, tmp_path: Path) -> None:
    page = tmp_path / "choices.md"
    page.write_text("a\n<!-- small -->\nold\n<!-- end of small -->\nb\n")
    for _ in range(2):
        write(page, "small", both_sides(pieces, "small"))
    lines = page.read_text().splitlines()
    assert lines[:3] == ["a", "<!-- small -->", ""]
    assert lines[-2:] == ["<!-- end of small -->", "b"]
    assert len(lines) == 10


def test_the_other_charts_steps_begin_at_our_figures(pieces: Pieces) -> None:
    assert steps(curves(pieces)) == [((1, 100.0), (4, 350.0)), ((16, 100.0), (64, 150.0))]
    assert steps({}) == []


def test_every_table_but_the_log_has_rows_of_its_own() -> None:
    for table in TABLES:
        names = [name for name, _ in rows(table, 3, 1.0)]
        assert len(set(names)) == len(names)
        assert bool(names) == (table != "log")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as broker:
        for topic in ("numbered", "committed", "followed", "plain", "filled"):
            broker.create_topic(topic, partitions=2)
        yield broker.bootstrap_servers


@pytest.mark.slow
def test_what_is_written_is_read_in_order(servers: str) -> None:
    write_records(servers, "numbered", 2, 3000, 100, "all")
    assert read(servers, "numbered", 2, 3000)["out of order"] == 0
    write_records(servers, "numbered", 2, 10, 100, "all")
    assert read(servers, "numbered", 2, 3010)["out of order"] == 10, "the numbers begin again"


@pytest.mark.slow
def test_a_record_in_a_transaction_is_seen_after_the_commit(servers: str) -> None:
    assert commit(servers, "committed", 2, 0.3, 100, 0.1)["records"] >= 100
    plain = follow(servers, "plain", 2, 0.5, 200, 0)
    inside = follow(servers, "followed", 2, 1.0, 200, 0.25)
    assert 0 < plain["p50"] < inside["p50"], "half of the time between two commits is waited, in the middle"
    assert inside["p99"] > 0.15


@pytest.mark.slow
def test_a_filled_log_has_every_record(servers: str) -> None:
    assert fill(servers, "filled", 0.002)["records"] == 2000


@pytest.mark.long
def test_a_log_is_killed_started_read_and_halved(tmp_path: Path) -> None:
    written = long_log.fill("barnabas", tmp_path / "log", 0.02, segment_bytes=1 << 20)
    assert written["written MB/s"] > 0
    long_log.rest("barnabas", tmp_path / "log", seconds=0)
    found = long_log.measure("barnabas", tmp_path / "log", 0.002)
    assert 0.008 < found["retention: deleted GB"] < 0.014
    assert found["killed at rest: log is there s"] >= found["killed at rest: answers s"]


def test_pages_that_left_memory_are_still_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"x" * 100_000)
    drop_pages(tmp_path)
    assert (tmp_path / "inner" / "file").read_bytes() == b"x" * 100_000
