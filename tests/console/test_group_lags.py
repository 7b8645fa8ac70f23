"""Lags of several groups."""

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.group_lags import group_lags
from tests.console.conftest import HOSTILE


def test_lags(broker: barnabas.Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        found = group_lags(admin, [HOSTILE, "absent"])
    # Of five records in partition 0 one is read. In partition 1 nothing is committed.
    assert list(found) == [HOSTILE]
    assert found[HOSTILE][1:] == ("Stable", "classic", 1, 4)
