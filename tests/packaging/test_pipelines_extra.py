"""The wheel with its extra `pipelines`, installed by pip into an empty environment: the README's three lines give a table.

`python -m pytest -m long tests/packaging/test_pipelines_extra.py` fetches half a gigabyte from the package index.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from barnabas.demo.answers import totals
from barnabas.demo.feeder import Feed, read_lines
from tests.pages import ROOT, blocks

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(7000)]
_MINUTES = 60


class Environment:
    """An empty environment, and a folder away from the source tree in which its commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        self._run([sys.executable, "-m", "venv", str(folder / "env")])

    def pip(self, *words: str) -> None:
        self._run([str(self.bin / "pip"), *words])

    def type(self, script: str, **environment: str) -> str:
        """Type lines into a shell in which the environment is active; return what they print."""
        return self._run(["/bin/sh", "-ec", script], environment)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.bin / words[0]), *words[1:]], cwd=self.folder, stdout=subprocess.PIPE, text=True
        )

    def _run(self, command: list[str], environment: dict[str, str] | None = None) -> str:
        variables = {"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home())}
        variables |= {"SPARK_LOCAL_IP": "127.0.0.1"} | (environment or {})
        done = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=_MINUTES * 60, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    found = Environment(tmp_path_factory.mktemp("pipelines"))
    found.pip("wheel", "-q", "--no-deps", "--wheel-dir", str(found.folder), str(ROOT))
    (wheel,) = found.folder.glob("*.whl")
    found.pip("install", "-q", f"{wheel}[pipelines]")
    return found


@pytest.fixture(scope="module")
def said(environment: Environment) -> list[list[str]]:
    """The rows that the README's lines print last."""
    (lines,) = (text for text in blocks("README.md", "sh") if "barnabas demo --data-dir" in text)
    assert len(lines.splitlines()) == 3
    rows = [line.split("\t") for line in environment.type(lines).splitlines()]
    return [row for row in rows if len(row) == 3]


def test_the_readmes_three_lines_give_a_table_with_rows(said):
    days = {date.fromisoformat(day): (Decimal(revenue), int(lines)) for day, revenue, lines in said}
    expected = totals(read_lines(Feed()))
    assert len(days) > 10
    assert sum(lines for _, lines in days.values()) == expected.clean
    assert sum(revenue for revenue, _ in days.values()) * 1000 == expected.revenue_thousandths


@pytest.fixture
def address(environment: Environment) -> Iterator[str]:
    """The demo's broker, started again in the demo's folder."""
    broker = environment.start("barnabas", "start", "--data-dir", "my-shop/broker", "--listen", "127.0.0.1:0")
    assert broker.stdout is not None
    try:
        yield next(line for line in broker.stdout if "ready on" in line).split()[-1]
    finally:
        broker.terminate()
        broker.wait()


def test_spark_pipelines_runs_in_the_same_folder(environment, said, address):
    script = f"""cd my-shop
    export SPARK_CONF_DIR=$PWD/conf PYTHONPATH=$PWD
    spark-pipelines run --conf spark.shop.bootstrap.servers={address}
    spark-sql -e "SELECT * FROM revenue_by_day"
    """
    rows = [line.split("\t") for line in environment.type(script).splitlines()]
    assert sorted(row for row in rows if len(row) == 3) == sorted(said)
