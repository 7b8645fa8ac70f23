"""One topic."""

from starlette.testclient import TestClient

import barnabas
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_command_prints(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "topic", name="orders")
    (described,) = printed(broker.bootstrap_servers, "topic", "describe", "orders", "--all")
    assert found["summary"] == described["summary"]
    assert found["partitions"] == described["partitions"]
    configs = [{name: each[name] for name in ("key", "value", "source")} for each in found["configs"]]
    assert configs == described["configs"]
    assert all(each["documentation"] for each in found["configs"])
    assert found["sizes"]["records"] == 6


def test_a_topic_that_is_missing(browser: TestClient) -> None:
    for name in ("absent", "", "<b>", "x" * 300):
        answer = browser.get("/clusters/local/topic", params={"name": name})
        assert answer.status_code == 404
        assert "<b>" not in answer.text
    assert "Topic absent does not exist" in html(browser, "topic", name="absent")
