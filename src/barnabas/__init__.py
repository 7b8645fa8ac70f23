"""barnabas: a commit log that speaks Apache Kafka's protocol.

    import barnabas

    with barnabas.Broker() as broker:
        print(broker.bootstrap_servers)

- `Broker` is a real broker inside this process, see `barnabas.embedded.broker`. It needs Linux or macOS.
- `Cluster` is several nodes, each a process, with faults that a test may order, see `barnabas.embedded.cluster`.
- `ConfigError`: a setting is unknown or has an invalid value.
- `CannotStart`: the broker cannot start, for example because a directory is in use or broken, or the port is taken.
- `InjectedFault` is what `fail` and `drop_response_after_write` return: it counts the requests that it met.
- `KafkaError`: an error of Kafka's protocol, with its `code`.
- `read` returns the records of topics as Arrow, see `barnabas.arrow`.

Each is imported when it is first used, so that `import barnabas` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.arrow.read import read as read
    from barnabas.config.cannot_start import CannotStart as CannotStart
    from barnabas.config.config import ConfigError as ConfigError
    from barnabas.embedded.broker import Broker as Broker
    from barnabas.embedded.cluster import Cluster as Cluster
    from barnabas.embedded.fault_tickets import InjectedFault as InjectedFault
    from barnabas.embedded.request_log import ObservedRequest as ObservedRequest
    from barnabas.protocol.errors import KafkaError as KafkaError

__all__ = ["Broker", "CannotStart", "Cluster", "ConfigError", "InjectedFault", "KafkaError", "ObservedRequest", "read"]

__getattr__ = imported_when_used(
    __name__,
    Broker="barnabas.embedded.broker",
    CannotStart="barnabas.config.cannot_start",
    Cluster="barnabas.embedded.cluster",
    ConfigError="barnabas.config.config",
    InjectedFault="barnabas.embedded.fault_tickets",
    KafkaError="barnabas.protocol.errors",
    ObservedRequest="barnabas.embedded.request_log",
    __version__="barnabas.version",
    read="barnabas.arrow.read",
)
