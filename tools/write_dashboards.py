"""Write the dashboards for Grafana from the table of their panels: `python tools/write_dashboards.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard_panels import DASHBOARDS, Dashboard, Panel, Variable

FOLDER = Path(__file__).parent.parent / "packaging" / "monitoring" / "grafana"
SCHEMA_VERSION = 39
WIDTH = 24
SIZES = {"stat": (4, 4), "timeseries": (8, 7)}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(of: Dashboard) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it."""
    return {
        "title": of.title,
        "uid": f"barnabas-{of.name}",
        "description": of.text,
        "tags": ["barnabas", "kafka"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "graphTooltip": 1,
        "annotations": {"list": []},
        "templating": {"list": list(_variables(of.variables))},
        "panels": list(_panels(of)),
    }


def text(of: Dashboard) -> str:
    return json.dumps(dashboard(of), indent=1, ensure_ascii=False) + "\n"


def _variables(variables: tuple[Variable, ...]) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    for each in variables:
        metric = each.metric.replace("@", 'job=~"$job"')
        yield {
            "name": each.name,
            "label": each.title,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": f"label_values({metric}, {each.label})", "refId": each.name},
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        }


def _panels(of: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield rows and panels, each row from left to right and downwards."""
    number, y = 0, 0
    for row in of.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        }
        x, y, deepest = 0, y + 1, 0
        for panel in row.panels:
            width, height = SIZES["timeseries" if panel.is_name else panel.kind]
            if x + width > WIDTH:
                x, y, deepest = 0, y + deepest, 0
            number += 1
            yield _panel(number, panel, of.matchers) | {"gridPos": {"x": x, "y": y, "w": width, "h": height}}
            x, deepest = x + width, max(deepest, height)
        y += deepest


def _panel(number: int, panel: Panel, matchers: str) -> dict[str, Any]:
    steps = [{"color": panel.base, "value": None}, *({"color": color, "value": value} for value, color in panel.steps)]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.names:
        options = {str(value): {"text": name, "index": value} for value, name in panel.names}
        defaults["mappings"] = [{"type": "value", "options": options}]
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 10,
            "thresholdsStyle": {"mode": "line" if panel.steps else "off"},
        }
    made: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "targets": [
            {"refId": chr(ord("A") + index), "expr": expression.replace("@", matchers), "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
    }
    return made | ({"description": panel.text} if panel.text else {})


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return {
        "colorMode": "background",
        "graphMode": "none",
        "textMode": "name" if panel.is_name else "value",
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "justifyMode": "auto",
        "orientation": "auto",
        "wideLayout": True,
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    }


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in DASHBOARDS:
        (FOLDER / f"{each.name}.json").write_text(text(each), encoding="utf-8")


if __name__ == "__main__":
    main()
