"""The list of groups."""

from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import HOSTILE
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_command_prints_with_lag(broker: barnabas.Broker, browser: TestClient) -> None:
    (found,) = twin(browser, "groups")["groups"]
    (listed,) = printed(broker.bootstrap_servers, "group", "list")
    assert found == listed | {"members": 1, "total_lag": 4}
    assert found["group"] == HOSTILE


def test_a_filter_that_matches_nothing(browser: TestClient) -> None:
    assert "No group&#39;s id contains “nothing”." in html(browser, "groups", q="nothing")
