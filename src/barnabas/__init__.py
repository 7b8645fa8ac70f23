"""barnabas: a distributed commit log that speaks Apache Kafka's protocol.

    import barnabas

    with barnabas.Broker() as broker:
        print(broker.bootstrap_servers)

`Broker` is a real broker inside this process, see `barnabas.server.embedded`. It is imported when it is first asked for, so that
`import barnabas` costs nothing to those who only want a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.embedded import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from barnabas.server.embedded import Broker

        globals()["Broker"] = Broker
        return Broker
    if name == "__version__":
        from importlib.metadata import version

        return version("barnabas")
    raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
