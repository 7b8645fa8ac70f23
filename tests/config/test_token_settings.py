"""The settings of delegation tokens: without a secret there are none."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.config.token_settings import TOKEN_SETTINGS, token_settings


@pytest.mark.parametrize("given", [{}, {"delegation.token.secret.key": ""}, {"delegation.token.expiry.time.ms": "5"}])
def test_without_a_secret_there_are_none(given: dict[str, str]) -> None:
    assert token_settings(BrokerConfig.from_properties(given)) is None


def test_kafkas_defaults() -> None:
    found = token_settings(BrokerConfig.from_properties({"delegation.token.secret.key": "s"}))
    assert found is not None
    assert found[1:] == (7 * 86_400_000, 86_400_000, 3_600_000)


def test_a_node_honours_each_of_them() -> None:
    given = dict.fromkeys(TOKEN_SETTINGS, "7")
    found = token_settings(BrokerConfig.from_properties(given))
    assert found is not None
    assert found[1:] == (7, 7, 7)
