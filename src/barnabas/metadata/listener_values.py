"""The value of `listeners`, checked when it is altered for one broker.

The sentences are those of Apache Kafka 4.3.1. Unlike Kafka this does not ask whether each name has a security protocol,
nor whether a controller's listener is among them: the broker reads `listeners` at its start and checks both there.

Source: Kafka's `SocketServerConfigs.listenerListToEndPoints`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from barnabas.metadata.config_schema import ConfigError

_ENDPOINT = re.compile(r"(.*)://\[?[0-9a-zA-Z\-%._:]*\]?:-?[0-9]{1,10}")


def check_listeners(entries: Sequence[str]) -> None:
    """Check that every entry is NAME://host:port, with names that differ.

    Raises:
        ConfigError: with Kafka's sentence.
    """
    if not entries:
        raise ConfigError("Configuration 'listeners' must not be empty. Valid values include: any non-empty value")
    if "" in entries:
        raise ConfigError("Configuration 'listeners' values must not be empty.")
    listed = f"[{', '.join(entries)}]"
    for entry in entries:
        if ":" not in entry:
            raise ConfigError(f"Unable to parse a listener name from {entry}")
    names: set[str] = set()
    for entry in entries:
        if (found := _ENDPOINT.fullmatch(entry)) is None:
            why = f"Unable to parse {entry} to a broker endpoint"
        elif not found[1]:
            why = "The provided listener name is null or empty string"
        elif found[1].upper() in names:
            why = f"Each listener must have a different name, listeners: {listed}"
        else:
            names.add(found[1].upper())
            continue
        raise ConfigError(f"Error creating broker listeners from '{listed}': {why}")
