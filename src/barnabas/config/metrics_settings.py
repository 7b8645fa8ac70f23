"""The settings of the port of `/metrics`, and what they need of each other.

    barnabas.metrics.listen          HOST:PORT; no port without it
    barnabas.metrics.ssl.*           TLS, by the settings of a listener's key store
    barnabas.metrics.token.file      a file with the bearer token

A setting that would protect a port that does not exist stops the start, and so does one of TLS that is not in the table: their owner
believes that the port is protected.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.config_schema import ConfigError
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

__all__ = ["METRICS", "TOKEN_FILE", "check_metrics_settings", "tls_settings_of_metrics"]

METRICS = "barnabas.metrics."
"""Stands before the name of a listener's setting, as in barnabas.metrics.ssl.keystore.location."""

LISTEN = f"{METRICS}listen"
TOKEN_FILE = f"{METRICS}token.file"
_TLS = f"{METRICS}ssl."


def tls_settings_of_metrics(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of TLS, with their whole names; none for a port without TLS."""
    return {name: text for name, text in properties.items() if name.startswith(_TLS) and text}


def check_metrics_settings(given: Mapping[str, str], known: Mapping[str, object]) -> None:
    """Reject settings of protection that nothing honours.

    Args:
        given: text by name.
        known: the settings that a broker has, by name.

    Raises:
        ConfigError: there is one.
    """
    asking = [name for name, text in sorted(given.items()) if text and name.startswith((_TLS, TOKEN_FILE))]
    for name in asking:
        if name not in known:
            meant = did_you_mean(name, (each for each in known if each.startswith(METRICS)))
            raise ConfigError(f"{printable(name)} is not a setting of /metrics{meant}; correct or remove it")
        if not given.get(LISTEN):
            raise ConfigError(f"{name}: protects nothing, because {LISTEN} is not set. Set it, or remove {name}")
