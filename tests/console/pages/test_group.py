"""One group."""

from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import HOSTILE
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "group", id=HOSTILE)
    (offsets,) = printed(broker.bootstrap_servers, "group", "describe", HOSTILE)
    (members,) = printed(broker.bootstrap_servers, "group", "describe", HOSTILE, "--members")
    assert found["group"] == {**offsets, "members_list": members["members_list"]}
    assert found["rebalances"] == printed(broker.bootstrap_servers, "group", "why", HOSTILE)


def test_its_tables(browser: TestClient) -> None:
    page = html(browser, "group", id=HOSTILE)
    assert "<h3>Summary</h3>" in page
    for caption in ("Members", "Partitions", "The last rebalances, and why"):
        assert f">{caption}</caption>" in page


def test_a_group_that_is_missing(browser: TestClient) -> None:
    for group_id in ("absent", "..", "a/b"):
        assert browser.get("/clusters/local/group", params={"id": group_id}).status_code == 404
    assert "Group absent does not exist" in html(browser, "group", id="absent")


def test_rebalances_are_drawn(browser: TestClient) -> None:
    page = html(browser, "group", id=HOSTILE)
    assert 'aria-label="Rebalances, a picture"' in page
    assert "1 rebalance from " in page
    assert "+2</text>" in page
    assert "<script>alert" not in page


def test_its_pace(browser: TestClient) -> None:
    found = twin(browser, "group", id=HOSTILE)
    # Of five records in partition 0 one is read. In partition 1, with the open transaction, nothing is committed.
    assert found["group"]["lag_to_last_stable_offset"] == found["pace"]["lag_to_last_stable_offset"] == 4
    assert [each["lag_to_last_stable_offset"] for each in found["group"]["partitions"]] == [4, None]
    assert "LAG-TO-LAST-STABLE-OFFSET" in html(browser, "group", id=HOSTILE)
