"""One topic."""

from starlette.testclient import TestClient

import barnabas
from barnabas.console.app import Console
from barnabas.console.look import TopicTotals
from tests.console.conftest import cluster_at
from tests.console.reading import html, printed, twin
from tests.console.test_look import made_up


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


def test_its_rate_is_drawn_once_looks_have_it(broker: barnabas.Broker) -> None:
    console = Console([cluster_at(broker.bootstrap_servers)])
    looks = [made_up(at_s, orders=TopicTotals(1, int(at_s) * 3, 0)) for at_s in (0.0, 5.0, 10.0)]
    with TestClient(console.app(), base_url="http://localhost") as browser:
        assert "records_per_sec" not in twin(browser, "topic", name="orders")
        for now, before in zip(looks, [None, *looks], strict=False):
            console.samplers["local"].history.add(now, before, 15)
        assert [each["records_per_sec"] for each in twin(browser, "topic", name="orders")["records_per_sec"]] == [
            None,
            3,
            3,
        ]
        assert 'aria-labelledby="records_per_sec-heading"' in html(browser, "topic", name="orders")
        assert "records_per_sec" not in twin(browser, "topic", name="many-01")
