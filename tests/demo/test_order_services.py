"""Fulfilment and notifications: what each event makes them do, and that a kill between two steps changes nothing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from barnabas.demo.feeder import Feed, feed_lines, read_lines
from barnabas.demo.order_services import SERVICES, Notifications, Unusable, database_of
from barnabas.demo.service_processes import Served, ServiceProcesses, expected
from barnabas.demo.shop import create_topics

EVENT = {"event": "order.created", "order": "7", "line": 1, "stock_code": "A", "quantity": "6", "at": "2025-12-01"}


def rows(folder: Path, name: str, *events: dict[str, object]) -> dict[str, list[tuple[object, ...]]]:
    """Let a service take events; return the rows of its tables that have some."""
    with database_of(name, folder) as database:
        for event in events:
            SERVICES[name]().take(database, {**EVENT, **event})
        tables = [each for (each,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {each: found for each in tables if (found := database.execute(f"SELECT * FROM {each}").fetchall())}


def test_fulfilment_packs_and_takes_back_each_line_once(tmp_path: Path) -> None:
    second = {"event": "order.updated", "line": 2, "quantity": "3"}
    back = {"event": "order.cancelled", "order": "C8", "line": 3, "quantity": "-2"}
    found = rows(tmp_path, "fulfilment", {}, {}, second, back, second, back)
    assert found == {"packed": [("7", 1, "A", 6), ("7", 2, "A", 3)], "returned": [("C8", 3, "A", 2)]}


def test_a_mail_is_sent_once_for_an_order_and_its_cancellation(tmp_path: Path) -> None:
    events = ({}, {"event": "order.updated", "line": 2}, {}, {"event": "order.cancelled", "order": "C8"})
    found = rows(tmp_path, "notifications", *events)
    assert found == {"mails": [("7", "confirmation", "2025-12-01"), ("C8", "cancellation", "2025-12-01")]}


def test_what_cannot_be_used_has_a_reason(tmp_path: Path) -> None:
    with database_of("fulfilment", tmp_path) as database, pytest.raises(Unusable, match="quantity is not a number"):
        SERVICES["fulfilment"]().take(database, {**EVENT, "quantity": "a dozen"})
    with database_of("notifications", tmp_path) as database, pytest.raises(Unusable, match="was not created"):
        Notifications().take(database, {**EVENT, "event": "order.updated"})


def test_what_the_lines_ask_for() -> None:
    lines = [
        ["1", "A", "", "5", "2025-12-01", "1", "", "X"],
        ["1", "B", "", "2", "2025-12-01", "1", "", "X"],
        ["C2", "A", "", "-3", "2025-12-02", "1", "", "X"],
        ["3", "A", "", "some", "2025-12-02", "1", "", "X"],
        ["nonsense"],
    ]
    assert expected(lines) == Served(7, 3, confirmations=2, cancellations=1, set_aside=2)


# A service whose process kills itself with SIGKILL after the third time that it reached a step.
DYING = """
import os, signal, sys
from pathlib import Path
from barnabas.demo import order_services
name, servers, folder, step = sys.argv[1:]
left = [3]
def reached(now):
    left[0] -= now == step
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
order_services.SERVICES[name].batch = 50
order_services.serve(name, servers, Path(folder), lambda: False, reached)
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_between_two_steps_each_line_is_served_once(tmp_path: Path) -> None:
    feed = Feed(rows=600)
    with barnabas.Broker() as broker:
        create_topics(broker.bootstrap_servers)
        feed_lines(broker.bootstrap_servers, feed)
        for name, step in (("fulfilment", "written"), ("fulfilment", "worked"), ("notifications", "written")):
            command = [sys.executable, "-c", DYING, name, broker.bootstrap_servers, str(tmp_path), step]
            died = subprocess.run(command, capture_output=True, timeout=100, env=os.environ, check=False)
            assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        services = ServiceProcesses(tmp_path, broker.bootstrap_servers)
        assert all(services.behind().values())
        services.start()
        try:
            while any(services.behind().values()):
                services.check()
        finally:
            services.stop()
        assert services.served() == expected(read_lines(feed))
    with sqlite3.connect(tmp_path / "notifications.sqlite") as database:
        reasons = {reason for (reason,) in database.execute("SELECT reason FROM set_aside")}
    database.close()
    assert not any("was not created" in each for each in reasons), json.dumps(sorted(reasons))
