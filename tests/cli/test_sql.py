"""`barnabas sql`: its outputs, and its errors with what to do next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.main import command_group


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as broker:
        lines = "".join(json.dumps({"country": country, "n": n}) + "\n" for n, country in enumerate("abab"))
        produce(broker.bootstrap_servers, "orders", lines)
        yield broker.bootstrap_servers


def produce(servers: str, topic: str, lines: str, *options: str) -> None:
    for arguments in (["topic", "create", topic], ["produce", topic, *options]):
        done = CliRunner().invoke(command_group(), [*arguments, "-b", servers], input=lines)
        assert done.exit_code == 0, done.output


def run(servers: str, *arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(command_group(), ["sql", *arguments, "-b", servers], input=given, prog_name="barnabas")


def test_a_table(servers):
    statement = "SELECT value->>'$.country' AS country, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1"
    assert run(servers, statement).output == "country  n\na        2\nb        2\n"


def test_json_fields(servers):
    statement = "SELECT value.country, sum(value.n::int) AS sum FROM orders GROUP BY ALL ORDER BY ALL"
    done = run(servers, statement, "--value", "json", "--format", "json")
    assert json.loads(done.output) == [{"country": "a", "sum": 2}, {"country": "b", "sum": 4}]


def test_csv_of_a_range_from_standard_input(servers):
    done = run(servers, "-", "-o", "csv", "--from", "1", "--to", "-1", given='SELECT "offset" FROM orders')
    assert done.output == "offset\n1\n2\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["FROM ordes"], "error: topic ordes does not exist; did you mean orders? (`barnabas topic list` shows which"),
        (
            ["SELECT offset, key FROM orders"],
            'near "," (SQL reserves the word offset: write "offset" in double quotes)',
        ),
        (["SELECT nix FROM orders"], 'error: Referenced column "nix" not found in FROM clause'),
        (["FROM orders", "--from", "someday"], "got someday; or earliest, latest, group:NAME"),
        (["FROM orders", "--from", "group:shop"], "error: group shop has no offsets in the topics of this query"),
        (["FROM orders", "--from", "3", "--to", "2"], "Correct --from or --to"),
    ],
)
def test_errors_say_what_to_do(servers, arguments, complaint):
    done = run(servers, *arguments)
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert complaint in done.output


def test_a_value_that_is_not_text(servers):
    assert run(servers, "SELECT 1").exit_code == 0
    with barnabas.Broker() as other:
        produce(other.bootstrap_servers, "bytes", "ff\n", "-f", "%v{hex}\\n")
        done = run(other.bootstrap_servers, "SELECT value FROM bytes")
        assert done.output == (
            "error: the value at offset 0 of bytes-0 is not UTF-8 (--key binary and --value binary read bytes)\n"
        )
        assert run(other.bootstrap_servers, "SELECT value FROM bytes", "--value", "binary").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["{}", "COPY ({}) TO 'rows.csv'"], ids=["printed", "copied"])
def test_ctrl_c_ends_a_statement_and_leaves_nothing(servers, tmp_path, statement):
    """While rows are printed, and while DuckDB runs without a row for us."""
    words = [
        "sql",
        statement.format("SELECT i, value FROM orders, range(1000000000000) t(i)"),
        "-o",
        "csv",
        "-b",
        servers,
    ]
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path / "here",
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    try:
        assert running.stdout is not None
        if statement == "{}":
            assert running.stdout.readline() == b"i,value\n"
        else:
            deadline = time.monotonic() + 60
            while not any(each.stat().st_size for each in (tmp_path / "here").iterdir()):
                assert time.monotonic() < deadline
                assert running.poll() is None
                time.sleep(0.02)  # between two looks
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (errors.strip(), running.returncode) == (b"", 130)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
