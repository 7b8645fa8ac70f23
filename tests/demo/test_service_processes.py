"""What the services must do by the order lines, and that they do it however often they are killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from barnabas.demo.feeder import Feed, feed_lines, read_lines
from barnabas.demo.service_processes import Served, ServiceProcesses, expected
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker


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
from barnabas.demo.shop_broker import ShopBroker
name, servers, folder, step = sys.argv[1:]
left = [3]
def reached(now):
    left[0] -= now == step
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
order_services.SERVICES[name].batch = 50
order_services.serve(name, ShopBroker(servers), Path(folder), lambda: False, reached)
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_between_two_steps_each_line_is_served_once(tmp_path: Path) -> None:
    feed = Feed(rows=600)
    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))
        feed_lines(ShopBroker(broker.bootstrap_servers), feed)
        for name, step in (("fulfilment", "written"), ("fulfilment", "worked"), ("notifications", "written")):
            command = [sys.executable, "-c", DYING, name, broker.bootstrap_servers, str(tmp_path), step]
            died = subprocess.run(command, capture_output=True, timeout=100, env=os.environ, check=False)
            assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        services = ServiceProcesses(tmp_path, ShopBroker(broker.bootstrap_servers))
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
    assert not any("was not created" in each for each in reasons), reasons
