"""What each panel of the dashboards shows on real nodes, as a page: `python -m tests.metrics.panel_values` writes docs/dashboards.md.

Three nodes work under load, a real Prometheus scrapes them and evaluates every query of every panel; then a node is killed, and it
evaluates them again. The page's form follows from the table of panels alone. The values are those of one run, with two digits, and a test
compares all else.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from dashboard_panels import DASHBOARDS, Dashboard, Panel

from tests.cluster.waiting import wait_for
from tests.metrics.prometheus import Prometheus
from tests.metrics.watched_cluster import WatchedCluster

PAGE = Path(__file__).parents[2] / "docs" / "dashboards.md"
SECONDS = 180
NOTHING = "no data"
SHOWN = 3
HEAD = """# What the dashboards show

`make panels` writes this page: three nodes with TLS and a login work under load, Prometheus scrapes them twice a
second and evaluates every query of every panel of [packaging/monitoring](../packaging/monitoring/grafana). Then node 3
is killed with SIGKILL, and Prometheus evaluates them again when the alarm for it rings. The values are those of one
run on a small machine, rounded to two digits, so yours differ; the dashboards, rows, panels and queries are compared by
a test. The Spark query reports made-up numbers, and ends with the node.

The queries are as Grafana sends them with all nodes, groups and queries chosen, and with one minute for the range of
rates: paste one into the page of Prometheus. Of more than three series the page has the three with the largest values.
[Monitoring](monitoring.md) says how to start Prometheus and Grafana.
"""


class Query(NamedTuple):
    """One query of a panel: what Prometheus is asked, and the template of the names of its series."""

    panel: Panel
    expression: str
    legend: str


def asked(dashboard: Dashboard, row: int) -> Iterator[Query]:
    """Yield the queries of a row of a dashboard, with values for Grafana's variables."""
    for panel in dashboard.rows[row].panels:
        for expression, legend in panel.queries:
            text = expression.replace("@", dashboard.matchers).replace("$__rate_interval", "1m")
            yield Query(panel, re.sub(r'"\$\w+"', '".+"', text.replace('"$job"', '"barnabas"')), legend)


def every_query() -> Iterator[Query]:
    for dashboard in DASHBOARDS:
        for row in range(len(dashboard.rows)):
            yield from asked(dashboard, row)


def shown(query: Query, samples: list[dict[str, Any]]) -> str:
    """Return what a panel shows of the samples of its query: each series, or the three largest and how many more there are."""
    found: dict[str, tuple[float, str]] = {}
    for sample in samples:
        name = re.sub(r"\{\{(\w+)\}\}", lambda label, of=sample: of["metric"].get(label[1], ""), query.legend)  # type: ignore[misc]
        value = float(sample["value"][1])
        if not math.isnan(value):
            found[name] = value, name if query.panel.is_name else f"{name} {in_units(query.panel, value)}".strip()
    names = sorted(found)
    if len(names) > SHOWN:
        names.sort(key=lambda name: -found[name][0])
    first = [found[name][1] for name in names[:SHOWN]]
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join([*first, *more]) or NOTHING


def in_units(panel: Panel, value: float) -> str:
    """Return a value in the unit of its panel, with two digits."""
    names = dict(panel.names)
    if value in names:
        return names[int(value)]
    if panel.unit in ("bytes", "Bps"):
        return _scaled(value, ("B", "kB", "MB", "GB", "TB")) + ("/s" if panel.unit == "Bps" else "")
    if panel.unit in ("cps", "reqps"):
        return f"{_rounded(value)}/s"
    if panel.unit in ("percent", "percentunit"):
        return f"{_rounded(value * (100 if panel.unit == 'percentunit' else 1))} %"
    if panel.unit in ("s", "ms"):
        seconds = value if panel.unit == "s" else value / 1000
        if abs(seconds) >= 172_800:
            return f"{_rounded(seconds / 86_400)} days"
        return f"{_rounded(seconds)} s" if abs(seconds) >= 1 or not seconds else f"{_rounded(seconds * 1000)} ms"
    return _rounded(value)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    place = 0
    while abs(value) >= 1000 and place < len(units) - 1:
        value, place = value / 1000, place + 1
    return f"{_rounded(value)} {units[place]}"


def _rounded(value: float) -> str:
    if not value or not math.isfinite(value):
        return f"{value:g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}".removesuffix(".0")


def page(values: Mapping[str, tuple[str, str]]) -> str:
    """Return the page.

    Args:
        values: what was seen with three nodes, and after the death of one, by query.
    """
    parts = [HEAD]
    for dashboard in DASHBOARDS:
        parts.append(f"## {dashboard.title}\n\n{dashboard.text}\n")
        for number, row in enumerate(dashboard.rows):
            lines = [f"### {row.title} ({dashboard.name})", "", "| panel | query | three nodes | node 3 killed |"]
            lines.append("|---|---|---|---|")
            for query in asked(dashboard, number):
                code = query.expression.replace("|", "\\|")
                lines.append(f"| {query.panel.title} | `{code}` | {' | '.join(values[query.expression])} |")
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _seen(prometheus: Prometheus, queries: list[Query], what: str, *, all_of_them: bool) -> dict[str, str]:
    seen = dict.fromkeys((query.expression for query in queries), NOTHING)

    def ask() -> bool:
        for query in queries:
            answer = shown(query, prometheus.query(query.expression))
            if answer != NOTHING:
                seen[query.expression] = answer
        return not all_of_them or NOTHING not in seen.values()

    try:
        wait_for(what, ask, SECONDS)
    except AssertionError as error:
        raise AssertionError(f"without data: {[each for each in seen if seen[each] == NOTHING]}") from error
    return seen


def measured(folder: Path) -> dict[str, tuple[str, str]]:
    """Start all, and return what each query had with three nodes and after the death of one."""
    queries = list(every_query())
    with ExitStack() as stack:
        watched = WatchedCluster(folder, stack)
        prometheus = watched.prometheus
        with watched.with_a_share_group():
            before = _seen(prometheus, queries, "every query has data", all_of_them=True)
            os.kill(watched.pid(3), signal.SIGKILL)
            watched.end_query()
            expected = {"BarnabasNodeDown", "BarnabasFencedBroker", "BarnabasUnderReplicated", "BarnabasQueryEnded"}
            wait_for("the alarms of a killed node", lambda: expected <= prometheus.firing(), SECONDS)
            after = _seen(prometheus, queries, "every query is asked again", all_of_them=False)
    # A reader's folders, as on the other pages.
    return {
        query: (before[query].replace(str(folder), "/home/you"), after[query].replace(str(folder), "/home/you"))
        for query in before
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(measured(Path(folder))), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
