"""Grafana's own library for Go reads every dashboard strictly: no field that it does not know, none that it misses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conform.card.toolchains import built, run, tool
from tests.metrics.prometheus import FOLDER

pytestmark = pytest.mark.conform

SOURCES = Path(__file__).parent / "grafana_reader"
DASHBOARDS = sorted((FOLDER / "grafana").glob("*.json"))


@pytest.fixture(scope="module")
def reader() -> Path:
    files = [SOURCES / name for name in ("go.mod", "go.sum", "main.go")]

    def build(target: Path) -> None:
        run(tool("go"), "build", "-o", str(target / "reader"), ".", cwd=SOURCES)

    return built("grafana-reader", files, build) / "reader"


def read(reader: Path, *dashboards: Path) -> list[dict[str, Any]]:
    done = subprocess.run([reader, *dashboards], capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_dashboard_is_read(reader: Path) -> None:
    assert len(DASHBOARDS) == 4
    for path, found in zip(DASHBOARDS, read(reader, *DASHBOARDS), strict=True):
        panels = json.loads(path.read_text())["panels"]
        assert found["wrong"] == "", path.name
        assert sum(found["panels"].values()) == len(panels) > 5, path.name
        assert found["queries"] == sum(len(panel.get("targets", ())) for panel in panels) > 5, path.name


@pytest.mark.parametrize(
    ("word", "instead", "said"),
    [
        ('"justifyMode"', '"justify"', "unexpected field 'justify'"),
        ('"showLegend"', '"showLegends"', "showLegend: required field is missing"),
        ('"min": 0', '"min": "nought"', "cannot unmarshal string"),
    ],
)
def test_a_mistake_is_found(reader: Path, tmp_path: Path, word: str, instead: str, said: str) -> None:
    text = DASHBOARDS[0].read_text()
    assert word in text
    broken = tmp_path / "broken.json"
    broken.write_text(text.replace(word, instead, 1))
    [found] = read(reader, broken)
    assert said in found["wrong"]
