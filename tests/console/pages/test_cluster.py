"""The cluster."""

from starlette.testclient import TestClient

import barnabas
from tests.console.reading import printed, twin


def test_the_twin_is_what_the_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "cluster")
    assert found["info"].keys() == printed(broker.bootstrap_servers, "cluster", "info").keys()
    assert found["nodes"] == printed(broker.bootstrap_servers, "cluster", "nodes")
    assert found["quorum"].keys() == printed(broker.bootstrap_servers, "cluster", "quorum").keys()
    (directory,) = found["log_dirs"]
    (printed_directory,) = printed(broker.bootstrap_servers, "broker", "logdirs")
    assert directory.keys() == printed_directory.keys()
    assert directory["directory"] == printed_directory["directory"]
