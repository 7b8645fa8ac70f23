"""The rules and the dashboard of docs/monitoring ask for names and labels that a node serves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.monitored import Monitored, coordinate

yaml = pytest.importorskip("yaml")

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
PAGE = FOLDER.parent / "metrics.md"
OF_PROMETHEUS = {"up": {"job", "instance"}}
FUNCTIONS = {
    "changes", "clamp_min", "histogram_quantile", "increase", "label_values", "max", "min_over_time", "rate", "sum", "topk"
}  # fmt: skip
WORDS = {"and", "offset"}
GROUPING = re.compile(r"\b(?:by|on|group_right)\s*\(([^)]*)\)")
NAME = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?")


def rules() -> list[dict[str, Any]]:
    text = yaml.safe_load((FOLDER / "alarms.yml").read_text())
    return [rule for group in text["groups"] for rule in group["rules"]]


def alarms() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return found


def asked(expression: str) -> dict[str, set[str]]:
    """Return the names of metrics in an expression, each with the labels that are matched."""
    text = GROUPING.sub("", re.sub(r'"[^"]*"', "", expression))
    text = re.sub(r"\[[^\]]*\]", "", text)
    found: dict[str, set[str]] = defaultdict(set)
    for name, matchers in NAME.findall(text):
        if name not in FUNCTIONS | WORDS:
            found[name] |= set(re.findall(r"(\w+)\s*[=!]", matchers))
    return found


def grouped_by(expression: str) -> set[str]:
    return {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",") if label.strip()}


def expressions() -> list[str]:
    charts = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [rule["expr"] for rule in rules()] + charts


def test_how_an_expression_is_read() -> None:
    text = 'sum by (job) (rate(a_total{topic="", x=~"b|c"}[5m])) > 0 and on (job, y) up{job="a"} offset 5m'
    assert asked(text) == {"a_total": {"topic", "x"}, "up": {"job"}}
    assert grouped_by(text) == {"job", "y"}


def test_every_name_and_label_is_served(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    node.produce("t", b"a", timestamp=node.now_ms)
    node.fetch("t")
    node.commit("g", "t", 0)
    node.samples()
    node.now_ms += 30_000  # a verdict needs samples of half a minute
    served: dict[str, set[str]] = defaultdict(set, {name: set(labels) for name, labels in OF_PROMETHEUS.items()})
    for name, labels in node.samples():
        served[name] |= {label for label, _ in labels} | OF_PROMETHEUS["up"]
    for rule in rules():
        if "record" in rule:
            served[rule["record"]] = grouped_by(rule["expr"])
    for expression in expressions():
        for name, labels in asked(expression).items():
            assert name in served, expression
            assert labels <= served[name], (expression, name)
        assert grouped_by(expression) <= set().union(*(served[name] for name in asked(expression))), expression
    (variable,) = [
        each
        for each in json.loads((FOLDER / "dashboard.json").read_text())["templating"]["list"]
        if each["name"] == "job"
    ]
    assert set(asked(variable["query"]["query"])) - {"job"} <= set(served)


@pytest.mark.parametrize("rule", alarms(), ids=lambda rule: rule["alert"])
def test_an_alarm_says_what_is_wrong_and_what_helps(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"\d+m", rule.get("for", "0m"))
    labels = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    by = grouped_by(rule["expr"].partition(" and ")[0])
    lag = {"job", "consumergroup", "topic", "partition"}
    assert labels <= (by or {"job", "instance"} | lag), rule["expr"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, which comes with Prometheus, is not here")
def test_the_alarms_ring_for_the_right_groups() -> None:
    """Prometheus's own tool evaluates them over an hour of a cluster."""
    done = subprocess.run(
        ["promtool", "test", "rules", str(Path(__file__).parent / "alarms_in_an_hour.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_lists_the_alarms() -> None:
    listed = re.findall(r"^\| `(Barnabas\w+)`", PAGE.read_text(), re.MULTILINE)
    assert listed == [rule["alert"] for rule in alarms()]


def test_the_dashboard_has_a_place_for_each_panel() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    places = [
        {(x + dx, y + dy) for dx in range(w) for dy in range(h)}
        for x, y, w, h in ([panel["gridPos"][side] for side in "xywh"] for panel in panels())
    ]
    assert all(x < 24 for place in places for x, _ in place)
    assert not any(one & other for one, other in combinations(places, 2))
    for panel in panels():
        if panel["type"] != "row":
            assert [target["refId"] for target in panel["targets"]] == ["A", "B"][: len(panel["targets"])]
            assert panel["datasource"]["uid"] == "${datasource}"
