"""What the errors of a connection say."""

from __future__ import annotations

import errno
import socket

import pytest

from barnabas.client.errors import cannot_connect
from barnabas.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "no answer within 500 ms: a firewall, or the wrong host?"),
        (
            TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
            "no answer within 500 ms: a firewall, or the wrong host?",
        ),
        (socket.gaierror(-2, "Name or service not known"), "the host name does not resolve"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "connection refused"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 9)"), "no route to host"),
        (OSError("Multiple exceptions"), "multiple exceptions"),
    ],
)
def test_why_nobody_can_be_reached(error: OSError, reason: str) -> None:
    made = cannot_connect("here:1", error, 500)
    assert made.code is ErrorCode.BROKER_NOT_AVAILABLE
    assert made.message == f"cannot reach here:1: {reason}"
