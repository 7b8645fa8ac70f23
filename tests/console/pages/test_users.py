"""The page of users."""

from starlette.testclient import TestClient

import barnabas
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_command_prints(broker: barnabas.Broker, browser: TestClient) -> None:
    assert twin(browser, "users")["users"] == printed(broker.bootstrap_servers, "user", "list") == []
    assert "yet." in html(browser, "users")
