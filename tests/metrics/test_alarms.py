"""The rules and the dashboards of packaging/monitoring ask for names and labels that a node, or Spark's driver, serves."""

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
import write_dashboards

from tests.metrics.monitored import Monitored, coordinate

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging" / "monitoring"
PAGE = ROOT / "docs" / "monitoring.md"
OF_PROMETHEUS = {"up": {"job", "instance"}}
FUNCTIONS = {
    "absent", "changes", "clamp_min", "count", "deriv", "histogram_quantile", "increase", "label_values", "max", "min",
    "min_over_time", "rate", "sum", "time", "topk", "vector",
}  # fmt: skip
WORDS = {"and", "bool", "offset", "or"}
NOT_HERE = {
    "barnabas_certificate_not_after_timestamp_seconds": {"listener", "use"},
    "barnabas_sharegroup_records_acquired_total": set[str](),
    "kafka_server_sharegroupmetrics_recordacknowledgements_total": {"ackType"},
    "barnabas_transaction_ongoing_seconds": {"owner"},
    "kafka_server_leaderreplication_byte_rate": set[str](),
    "kafka_server_followerreplication_byte_rate": set[str](),
}
"""Of nodes with TLS, of members of a cluster, of share groups, of transactions that are open for long, and their labels."""
SPARK = ROOT / "docs" / "spark-operating.md"
GROUPING = re.compile(r"\b(?:by|on|group_right)\s*\(([^)]*)\)")
NAME = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?")


def rules() -> list[dict[str, Any]]:
    text = yaml.safe_load((FOLDER / "alarms.yml").read_text())
    return [rule for group in text["groups"] for rule in group["rules"]]


def alarms() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((FOLDER / "grafana").glob("*.json"))]


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard["panels"]
    return found


def of_spark() -> dict[str, set[str]]:
    """Return the names and labels of the page of Spark's driver."""
    found: dict[str, set[str]] = {}
    for name, kind, labels in re.findall(
        r"^\| `(barnabas_spark_\w+)` \| (\w+) \| ([^|]+) \|", SPARK.read_text(), re.MULTILINE
    ):
        for whole in (f"{name}_bucket", f"{name}_sum") if kind == "histogram" else (name,):
            found[whole] = {*labels.replace(",", " ").split(), *(("le",) if whole.endswith("_bucket") else ())}
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


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def grouped_by(expression: str) -> set[str]:
    return {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",") if label.strip()}


def expressions() -> list[str]:
    charts = [target["expr"] for each in dashboards() for panel in panels(each) for target in panel.get("targets", ())]
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
    for name, pairs in node.samples():
        served[name] |= {label for label, _ in pairs} | OF_PROMETHEUS["up"]
    for name, labels in (NOT_HERE | of_spark()).items():
        served[name] |= labels | OF_PROMETHEUS["up"]
    for rule in rules():
        if "record" in rule:
            served[rule["record"]] = grouped_by(rule["expr"])
    for expression in expressions():
        for name, labels in asked(expression).items():
            assert name in served, expression
            assert labels <= served[name], (expression, name)
        assert grouped_by(expression) <= set().union(*(served[name] for name in asked(expression))), expression
    for each in dashboards():
        for variable in each["templating"]["list"][1:]:
            metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
            ((name, matched),) = asked(metric).items()
            assert {label, *matched} <= served[name], variable


@pytest.mark.parametrize("rule", alarms(), ids=lambda rule: rule["alert"])
def test_an_alarm_says_what_is_wrong_and_what_helps(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "page"}
    page, _, anchor = rule["annotations"]["page"].partition("#")
    assert not anchor or anchor in anchors(ROOT / page)
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "0m"))
    labels = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    by = grouped_by(rule["expr"].partition(" and ")[0])
    lag = {"job", "consumergroup", "topic", "partition"}
    assert labels <= (by or {"job", "instance", "query"} | lag), rule["expr"]


def test_the_alarms_look_only_at_jobs_of_barnabas() -> None:
    """An exporter of another cluster serves metrics of the same names; those of Spark queries are nobody else's."""
    filtered = 0
    for rule in rules():
        for name, matchers in NAME.findall(GROUPING.sub("", rule["expr"])):
            if re.match(r"(kafka_|process_|barnabas_(?!spark_)|up$)", name):
                assert matchers == 'job=~"barnabas.*"', f"{name} in {rule['expr']}"
                filtered += 1
    assert filtered > len(rules())


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


@pytest.mark.parametrize("each", dashboards(), ids=lambda each: each["uid"])
def test_a_dashboard_has_a_place_for_each_panel(each: dict[str, Any]) -> None:
    assert len({panel["id"] for panel in panels(each)}) == len(panels(each))
    places = [
        {(x + dx, y + dy) for dx in range(w) for dy in range(h)}
        for x, y, w, h in ([panel["gridPos"][side] for side in "xywh"] for panel in panels(each))
    ]
    assert all(x < 24 for place in places for x, _ in place)
    assert not any(one & other for one, other in combinations(places, 2))
    for panel in panels(each):
        if panel["type"] != "row":
            assert [target["refId"] for target in panel["targets"]] == ["A", "B"][: len(panel["targets"])]
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all(target["legendFormat"] or panel["type"] == "stat" for target in panel["targets"])


def test_the_dashboards_are_those_of_the_table() -> None:
    for each in write_dashboards.DASHBOARDS:
        path = FOLDER / "grafana" / f"{each.name}.json"
        assert path.read_text(encoding="utf-8") == write_dashboards.text(each), "run `make docs`"
    assert len(dashboards()) == len(write_dashboards.DASHBOARDS)


def test_the_compose_file_mounts_what_is_there() -> None:
    """Each file that it mounts exists, and Grafana looks for the dashboards where they are mounted."""
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    mounts = [mount.split(":") for service in services.values() for mount in service["volumes"]]
    own = {source: target for source, target, *_ in mounts if source.startswith(".")}
    assert {source for source in own if not (FOLDER / source).exists()} == set()
    (provider,) = yaml.safe_load((FOLDER / "grafana" / "dashboards.yml").read_text())["providers"]
    assert provider["options"]["path"] == own["./grafana"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (FOLDER / "grafana" / Path(home).name).exists()
    (source,) = yaml.safe_load((FOLDER / "grafana" / "datasources.yml").read_text())["datasources"]
    assert source["url"] == "http://127.0.0.1:9090"
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]


def test_the_page_has_the_configuration_of_prometheus() -> None:
    shipped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    shown = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0])
    assert shown == {name: shipped[name] for name in ("rule_files", "scrape_configs")}
