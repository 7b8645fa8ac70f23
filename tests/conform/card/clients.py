"""The table of the card's clients: how each driver is built and started, and what its library leaves out.

A client whose package cannot be had is a row that says so: `prepare` raises Unavailable with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.conform.card import toolchains
from tests.conform.card.security import Way
from tests.conform.card.stage import CODECS

DRIVERS = Path(__file__).parents[1] / "drivers"
NO_CONSUMER_PROTOCOL = "speaks the classic group protocol only"
NO_SHARE_CONSUMER = "has no share consumer"
NO_OIDC = "has a librdkafka that is built without OIDC, so that it asks no token server"
OLD_SCRAM = "has a librdkafka before 2.6.1, which repeats its nonce in SCRAM: Apache Kafka 4 and barnabas refuse that"
NO_TOKENS = "sends no `tokenauth`, so that it cannot log in with a delegation token"
TRAITS = {
    "null headers": "sends no header without a value",
    "delete offsets": "deletes no offsets of a group",
    "delete group": "deletes no group",
    "config errors": "does not tell that a change of settings was refused",
}


@dataclass(frozen=True)
class Client:
    """One row. `prepare` returns the driver's command without the address; `without` maps a scenario to why it is left out, `traits`
    are what it leaves out of a scenario. `prepare_with_tls` is its own where a build without TLS is another one. `takes_tokens`: it can
    log in with a delegation token; `no_bearer`, `no_scram`: why it cannot with OAUTHBEARER or SCRAM."""

    name: str
    language: str
    prepare: Callable[[], list[str]]
    codecs: tuple[str, ...] = CODECS
    traits: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    prepare_with_tls: Callable[[], list[str]] | None = None
    takes_tokens: bool = False
    no_bearer: str = ""
    no_scram: str = ""

    def why_not(self, way: Way) -> str:
        """Return why the library cannot connect in this way; "" if it can."""
        if way.mechanism == "OAUTHBEARER":
            return self.no_bearer
        if (way.mechanism or "").startswith("SCRAM") and self.no_scram:
            return self.no_scram
        return NO_TOKENS if way.by_token and not self.takes_tokens else ""

    def with_tls(self) -> list[str]:
        """Return the command of a driver that can speak TLS."""
        return (self.prepare_with_tls or self.prepare)()


def python(program: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(DRIVERS / program)]


def java(version: str, *sources: str) -> Callable[[], list[str]]:
    return lambda: toolchains.java_driver(version, *sources)


CLIENTS = (
    Client("Java 4.4", "Java", java("4.4.0", "Sharing"), takes_tokens=True),
    Client("Java 3.9", "Java", java("3.9.2"), without={"share group": NO_SHARE_CONSUMER}, takes_tokens=True),
    Client(
        "confluent-kafka",
        "Python, librdkafka",
        python("confluent.py"),
        traits=("delete offsets",),
    ),
    Client(
        "kafka-python",
        "Python",
        python("kafka_python.py"),
        traits=("null headers",),
        without={"consumer group": NO_CONSUMER_PROTOCOL, "share group": NO_SHARE_CONSUMER},
    ),
    Client(
        "aiokafka",
        "Python, asyncio",
        python("aiokafka_driver.py"),
        traits=("delete offsets", "delete group"),
        without={"consumer group": NO_CONSUMER_PROTOCOL, "share group": NO_SHARE_CONSUMER},
    ),
    Client("franz-go", "Go", lambda: toolchains.go_driver("franz"), takes_tokens=True),
    Client(
        "sarama",
        "Go",
        lambda: toolchains.go_driver("sarama"),
        without={"consumer group": NO_CONSUMER_PROTOCOL, "share group": NO_SHARE_CONSUMER},
    ),
    Client(
        "kafkajs",
        "JavaScript",
        lambda: toolchains.node_driver("kafkajs"),
        codecs=("none", "gzip", "snappy"),
        traits=("null headers", "delete offsets"),
        without={
            "static member": "knows no static members",
            "consumer group": NO_CONSUMER_PROTOCOL,
            "share group": NO_SHARE_CONSUMER,
        },
    ),
    Client(
        "rdkafka",
        "Rust, librdkafka",
        lambda: toolchains.rust_driver("rust"),
        traits=("delete offsets", "config errors"),
        without={"share group": NO_SHARE_CONSUMER},
        prepare_with_tls=lambda: toolchains.rust_driver("rust", "tls"),
        no_bearer=NO_OIDC,
    ),
    Client(
        "kcat",
        "C, librdkafka",
        lambda: [sys.executable, str(DRIVERS / "kcat.py"), toolchains.tool("kcat")],
        without={
            "times": "cannot set a record's time",
            **dict.fromkeys(
                ("classic group", "static member", "consumer group", "group administration"),
                "commits in the background only and does not tell",
            ),
            "share group": NO_SHARE_CONSUMER,
            "transactions": "a transaction of one run reaches one partition",
            "offsets in transaction": "sends no offsets in a transaction",
            **dict.fromkeys(("topics", "configs", "deleted records"), "administers nothing"),
            "quota": "does not wait for the broker between records",
        },
        no_bearer=NO_OIDC,
        no_scram=OLD_SCRAM,
    ),
)
