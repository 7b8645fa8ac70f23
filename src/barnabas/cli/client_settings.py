"""The names that a client's properties file may hold: those that librdkafka or Kafka's Java client knows.

One file serves every command and Kafka's own tools: a command uses the names that it can, and leaves out the others. A name that
neither client knows is a mistake.

`client_settings.tsv` has a name and its clients on each line. Sources: `rd_kafka_conf_properties_show` of librdkafka 2.16; `configNames`
of the Java client's ConsumerConfig, ProducerConfig and AdminClientConfig, 3.9 and 4.4.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_suffix(".tsv")

# Classes that the Java client loads by name, such as serializers, read settings of their own.
_PREFIXES = ("basic.auth.", "config.providers.", "schema.registry.")


@cache
def client_settings() -> dict[str, list[str]]:
    """Return the clients that know each name: `java`, `librdkafka`."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    return {name: clients.split(",") for name, clients in (line.split("\t") for line in lines)}


def is_client_setting(name: str) -> bool:
    """Return whether a client knows a name."""
    return name in client_settings() or name.startswith(_PREFIXES)


def is_librdkafkas(name: str) -> bool:
    """Return whether librdkafka knows a name."""
    return "librdkafka" in client_settings().get(name, ())
