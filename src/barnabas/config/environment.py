"""Settings from the environment, as Apache Kafka's container image reads them.

    KAFKA_LOG_RETENTION_HOURS=3     log.retention.hours=3
    CLUSTER_ID=…                    the cluster id of a directory that is formatted now

`_` stands for `.`, `__` for `_`, `___` for `-`.

- Variables of Kafka's start scripts, such as KAFKA_HEAP_OPTS, are not settings; neither is a variable without a value.
- KAFKA_ADVERTISED_LISTENERS without KAFKA_LISTENERS listens on the same ports of every address, as in the image.
- CLUSTER_ID counts only for a directory that is not formatted yet, as in the image.

Source: Kafka's `KafkaDockerWrapper` and the image's `configure` script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["from_environment", "on_every_address"]

_PREFIX = "KAFKA_"
_OF_SCRIPTS = ("KAFKA_VERSION", "KAFKA_HOME", "KAFKA_DEBUG", "KAFKA_JMX_HOSTNAME", "KAFKA_JMX_PORT")
_LOGGING = ("KAFKA_LOG4J_", "KAFKA_TOOLS_LOG4J_")


def from_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return each setting's value and the variable that gives it, by Kafka's name."""
    return {
        _name(variable): (value, variable)
        for variable, value in sorted(environ.items())
        if variable.startswith(_PREFIX) and value and not _is_of_scripts(variable)
    }


def on_every_address(listeners: str) -> str:
    """Return the listeners with every host replaced by 0.0.0.0, as the image does with the advertised ones."""
    return re.sub("://[^,]*:", "://0.0.0.0:", listeners)


def _is_of_scripts(variable: str) -> bool:
    return variable in _OF_SCRIPTS or variable.startswith(_LOGGING) or variable.endswith(("_OPTS", "_OPT"))


def _name(variable: str) -> str:
    dotted = variable.removeprefix(_PREFIX).lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")
