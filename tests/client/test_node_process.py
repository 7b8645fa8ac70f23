"""A broker's process is gone when the connection to it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ConnectionLost, RequestTimedOut
from barnabas.client.node_process import NodeProcess


class Connection:
    closed = False

    def __init__(self) -> None:
        self.error: Exception | None = None

    def version_for(self, message_class: Any) -> int:
        return 3

    def request(self, message: Any, *, version: int) -> None:
        if self.error is not None:
            raise self.error


def test_the_process_is_gone_when_the_connection_is() -> None:
    connection = Connection()
    process = NodeProcess(cast(Cluster, SimpleNamespace(connection=lambda node: connection)), 1)
    assert not process.has_ended()
    connection.error = RequestTimedOut("no answer")
    with pytest.raises(RequestTimedOut):
        process.has_ended()
    connection.error = ConnectionLost("gone")
    assert process.has_ended()
    connection.error, connection.closed = None, True
    assert process.has_ended()
