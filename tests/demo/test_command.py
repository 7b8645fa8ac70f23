"""The command reports a missing part in one line, and runs from input to tables on a small generated shop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.demo.answers import totals
from barnabas.demo.command import demo
from barnabas.demo.feeder import Feed, feed_lines, read_lines
from barnabas.demo.service_processes import expected
from barnabas.demo.shop import create_topics, filled_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.tables import read_table
from barnabas.main import command_group
from tests.spark.session import SPARK_PROGRAM


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(demo, list(arguments))
    return result.exit_code, result.output


def test_no_java_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, said = run("--data-dir", str(tmp_path / "d"))
    assert code == 1
    assert said.startswith("error: Spark needs Java, but Java is not installed: install Java 17")
    assert said.count("\n") == 1
    assert not (tmp_path / "d").exists()


def test_a_folder_that_is_not_empty_is_rejected(monkeypatch, tmp_path):
    monkeypatch.setattr("barnabas.demo.command.check_java", lambda: 17)
    (tmp_path / "mine").write_text("x")
    code, said = run("--data-dir", str(tmp_path))
    assert code == 1
    assert "is not empty (name a new folder with --data-dir" in said


def test_a_broker_that_does_not_answer_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr("barnabas.demo.command.check_java", lambda: 17)
    code, said = run("-b", "127.0.0.1:1", "--data-dir", str(tmp_path / "d"))
    assert code == 1
    assert (
        said
        == "error: cannot reach 127.0.0.1:1: connection refused (start a broker with `barnabas start --data-dir DIR`,"
        " or name another with -b HOST:PORT)\n"
    )
    assert not (tmp_path / "d").exists()


def test_topics_that_are_not_empty_are_rejected_until_the_hint_is_typed(monkeypatch, tmp_path):
    monkeypatch.setattr("barnabas.demo.command.check_java", lambda: 17)
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        create_topics(ShopBroker(servers))
        assert filled_topics(ShopBroker(servers)) == []
        feed_lines(ShopBroker(servers), Feed(rows=100))
        code, said = run("-b", servers, "--data-dir", str(tmp_path / "d"))
        assert code == 1
        hint = f"`barnabas topic delete orders payments inventory -b {servers}`"
        assert said == (
            f"error: the demo would count what is already in orders and payments and inventory at {servers}"
            f" ({hint} deletes it; or leave out -b)\n"
        )
        assert not (tmp_path / "d").exists()
        assert CliRunner().invoke(command_group(), hint.strip("`").split()[1:]).exit_code == 0
        assert filled_topics(ShopBroker(servers)) == []


def test_a_missing_input_is_rejected(tmp_path):
    code, said = run("--input", str(tmp_path / "nowhere.csv"))
    assert code == 2
    assert "does not exist" in said


def test_the_input_may_be_named_by_a_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("BARNABAS_ONLINE_RETAIL", str(tmp_path / "nowhere.csv"))
    code, said = run()
    assert code == 2
    assert "nowhere.csv" in said.replace("\n", "")


@pytest.mark.parametrize("arguments", [("--rows", "0"), ("--speed", "0"), ("--rows", "many")])
def test_invalid_numbers_are_rejected(arguments):
    assert run(*arguments)[0] == 2


def test_only_the_folder_of_a_demo_can_be_continued(monkeypatch, tmp_path):
    monkeypatch.setattr("barnabas.demo.command.check_java", lambda: 17)
    code, said = run("--continue", str(tmp_path))
    assert code == 1
    assert said == f"error: {tmp_path} is not the folder of a demo (leave out --continue to start one)\n"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo") / "output"
    command = [sys.executable, "-m", "barnabas", "demo", "--rows", "3000", "--seconds", "2", "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, env=os.environ | {"NO_COLOR": "1"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stderr == "", "Spark's noise belongs into its log"
    return folder, done.stdout


class TestTheWholeWay:
    """One run, as a user would start it; the pipeline is killed half way. Two starts of Spark take long: `make conform` runs it."""

    pytestmark: ClassVar = [*SPARK_PROGRAM, pytest.mark.conform]

    def test_tables(self, output):
        said = output[1]
        for title in ("Revenue per country", "Best sellers", "Least left in stock", "Payments", "Rejected lines"):
            assert title in said

    def test_it_was_killed_and_the_sums_are_those_of_the_lines(self, output):
        folder, said = output
        assert "the pipeline is killed (kill -9)" in said
        expected = totals(read_lines(Feed(rows=3000)))
        assert (
            f"{expected.clean:,} clean lines, {expected.rejected} rejected; "
            f"revenue {expected.revenue_thousandths / 1000:,.2f}; the same sums as straight from the order lines"
        ) in said
        orders = read_table(folder / "spark-warehouse" / "live.db" / "checked_orders", ["partition", "offset"])
        assert orders is not None
        assert orders.num_rows == orders.group_by(["partition", "offset"]).aggregate([]).num_rows == 3000

    def test_the_services_did_what_the_lines_ask_for(self, output):
        folder, said = output
        wanted = expected(read_lines(Feed(rows=3000)))
        assert f"fulfilment packed {wanted.packed:,} pieces and took {wanted.returned:,} back" in said
        assert "each once, as the order lines say" in " ".join(said.split())
        assert (folder / "notifications.sqlite").exists()

    def test_the_chart(self, output):
        assert (output[0] / "chart.png").read_bytes().startswith(b"\x89PNG")

    def test_the_output_says_where_the_files_are(self, output):
        folder, said = output
        for name in ("chart.png", "spark-warehouse/live.db/", "checkpoints/", "shop/", "broker/", "spark.log"):
            assert str(folder / name.rstrip("/")) in said.replace("\n", "")
            assert (folder / name).exists()

    def test_the_tables_answer_as_the_output_says(self, output):
        typed = output[1].partition("ask the tables:\n")[2].splitlines()[:3]
        plain = os.environ | {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(["bash", "-ec", "\n".join(typed)], env=plain, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) >= 2
