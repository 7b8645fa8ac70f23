"""Settings of the port of /metrics that protect nothing stop the start."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.metrics_settings import tls_settings_of_metrics

LISTEN = {"barnabas.metrics.listen": "127.0.0.1:0"}


def test_settings_of_tls() -> None:
    given = {
        "barnabas.metrics.ssl.keystore.type": "PEM",
        "barnabas.metrics.ssl.keystore.location": "",
        "ssl.keystore.location": "x",
        **LISTEN,
    }
    assert tls_settings_of_metrics(given) == {"barnabas.metrics.ssl.keystore.type": "PEM"}
    BrokerConfig.from_properties(
        {**LISTEN, "barnabas.metrics.ssl.keystore.location": "x", "barnabas.metrics.token.file": "y"}
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"barnabas.metrics.token.file": "x"},
            "barnabas.metrics.token.file: protects nothing, because barnabas.metrics.listen is not set. Set it, or remove",
        ),
        ({"barnabas.metrics.ssl.keystore.type": "PEM"}, "barnabas.metrics.ssl.keystore.type: protects nothing"),
        (
            {**LISTEN, "barnabas.metrics.ssl.client.auth": "required"},
            "barnabas.metrics.ssl.client.auth is not a setting of /metrics",
        ),
        (
            {**LISTEN, "barnabas.metrics.ssl.keystore.locations": "x"},
            "did you mean barnabas.metrics.ssl.keystore.location[?]; correct or remove it",
        ),
    ],
)
def test_a_setting_that_nothing_honours(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        BrokerConfig.from_properties(given)
    BrokerConfig.from_properties(given, served=False)
