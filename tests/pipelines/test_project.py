"""What the commands do to a project's folder: positions are handed over, tables are put aside, one process runs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from run_pipelines import Shop

from shop.__main__ import shop
from shop.new import new
from shop.project import Project, ProjectError

OFFSETS = {"orders": {"0": 7, "1": 9}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose query of orders has finished batch 10 and begun batch 11."""
    project = Project(new(tmp_path / "mine"))
    checkpoint = project.folder / "checkpoints" / "checked_orders"
    for log, numbers in (("offsets", (9, 10, 11)), ("commits", (9, 10))):
        (checkpoint / log).mkdir(parents=True)
        for number in numbers:
            text = json.dumps(OFFSETS | {"~first": {}} if number == 10 else {"orders": {"0": number}})
            (checkpoint / log / str(number)).write_text(f"v1\n{{}}\n{text}")
    (checkpoint / "metadata").write_text('{"id":"x"}')
    for name in ("checked_orders", "alerts"):
        rows = project.folder / "spark-warehouse" / "live.db" / name
        rows.mkdir(parents=True)
        (rows / "rows.parquet").write_text(name)
    (project.folder / "checkpoints" / "alerts" / "state").mkdir(parents=True)
    return project


@pytest.fixture
def type_in(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(project.folder)
    return lambda *words: CliRunner().invoke(shop, list(words))


def test_a_folder_that_is_named_from_here_is_found_from_within_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed_in = Shop(Path("mine"), "127.0.0.1:9092")
    assert typed_in.folder == tmp_path / "mine"
    assert typed_in.environment["PYTHONPATH"] == str(tmp_path / "mine")
    assert typed_in.environment["SPARK_CONF_DIR"] == str(tmp_path / "mine" / "conf")


def test_the_position_is_that_of_the_last_finished_batch(project, type_in):
    assert json.loads(project.positions("checked_orders") or "") == OFFSETS
    assert json.loads(type_in("positions", "checked_orders").output) == OFFSETS
    assert type_in("positions", "stock_events").output == "Error: stock_events has finished no batch yet\n"


def test_a_query_of_a_table_starts_over_when_it_is_upgraded(project, type_in):
    assert type_in("upgrade", "alerts").output.startswith("alerts starts over, with an empty table; ")
    assert not (project.folder / "checkpoints" / "alerts").exists()
    assert list((project.folder / "spark-warehouse" / "live.db" / "alerts").iterdir()) == []
    assert (project.folder / "checkpoints" / "checked_orders" / "metadata").exists()


@pytest.mark.parametrize(
    ("to", "option"),
    [("earliest", "startingOffsets"), ("latest", "startingOffsets"), ("2026-11-22T08:00", "startingTimestamp")],
)
def test_a_reset_begins_elsewhere_with_empty_tables(project, type_in, to, option):
    assert type_in("reset", "--to", to).exit_code == 0
    assert project.starting()["checked_orders"] == {option: to}
    assert set(project.starting()) == {"checked_orders", "payment_events", "stock_events"}
    assert list((project.folder / "checkpoints").iterdir()) == []
    assert list((project.folder / "spark-warehouse" / "live.db" / "alerts").iterdir()) == []


def test_nothing_is_moved_while_the_shop_runs(project, type_in):
    with project.lock():
        assert Project(project.folder).runner() is not None
        for words in (("reset", "--to", "latest"), ("upgrade", "alerts")):
            said = type_in(*words).output
            assert said.startswith("Error: the shop runs as process ")
            assert said.endswith(" (`python -m shop stop` ends it)\n")
    assert project.runner() is None
    assert type_in("stop").output == "Error: the shop does not run here\n"


def test_the_status(project, type_in):
    assert type_in("status").output == "Error: the shop has never run here (`python -m shop run` starts it)\n"
    query = dict.fromkeys(("batch", "rows", "rejected", "dropped", "lag", "restarts"), 1234)
    names = ("alerts", "sent_dead_letters")
    queries = [{"name": name, "state": "running", **query} for name in names]
    status = {"alarms": ["it is late"], "queries": queries}
    project.write_status(status)
    said = type_in("status").output.splitlines()
    assert said[0].startswith("does not run; this is how it was ")
    assert [line.split() for line in said[2:4]] == [[name, "stopped", *["1,234"] * 6] for name in names]
    assert said[4] == "ALARM: it is late"
    assert project.status() is not None
    assert time.time() - (project.status() or {})["at"] < 1000


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ProjectError, match="is not a shop's folder"):
        Project(tmp_path)
