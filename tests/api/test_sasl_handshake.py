"""SaslHandshake: the mechanisms of the listener, and one that it has not enabled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslHandshakeRequest
from tests.api.logging_in import serving_logins
from tests.api.served_node import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = serving_logins(tmp_path)
    yield node
    node.close()


@pytest.mark.parametrize("version", [0, 1])
def test_an_enabled_mechanism(serving: Serving, version: int) -> None:
    answer = serving.ask(SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN"])
    assert serving.connection.login is not None
    assert serving.connection.login.expects_raw_token is (version == 0)


def test_a_mechanism_that_is_not_enabled(serving: Serving) -> None:
    answer = serving.ask(SaslHandshakeRequest(mechanism="GSSAPI"))
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN"]
    assert serving.connection.login is not None
    assert serving.connection.login.why_failed == "the mechanism 'GSSAPI' is not enabled"


def test_a_listener_without_sasl(serving: Serving) -> None:
    serving.connection.login = None
    assert serving.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
