"""Transactions."""

from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import HOSTILE
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "transactions")
    assert found["transactions"] == printed(broker.bootstrap_servers, "txn", "list")
    (held,) = found["held_back"]
    (diagnosed,) = printed(broker.bootstrap_servers, "txn", "doctor")
    moving = ("open_for", "advice")
    assert {name: held[name] for name in held if name not in moving} == {
        name: diagnosed[name] for name in diagnosed if name not in moving
    }
    assert (held["topic"], held["partition"], held["transactional_id"]) == ("orders", 1, HOSTILE)


def test_a_filter_that_matches_nothing(browser: TestClient) -> None:
    assert "No transactional id contains “nothing”." in html(browser, "transactions", q="nothing")
