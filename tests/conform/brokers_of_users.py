"""A broker of each kind with a listener of users over TLS, and a transcript of what Kafka's tools print there.

The tools' output holds times, addresses, tokens and figures of a load: the transcript takes them out, so that the rest can be compared.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from apache_kafka import ApacheKafka, free_port

from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.conform.brokers import BarnabasProcess
from tests.conform.tool_process import ToolProcess

MODULES = "org.apache.kafka.common.security."
PLAIN, SCRAM = f"{MODULES}plain.PlainLoginModule", f"{MODULES}scram.ScramLoginModule"
USERS = ("admin", "alice", "bob", "carol")
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f"{PLAIN} required " + " ".join(f'user_{name}="{name}-secret"' for name in USERS) + ";"
    ),
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    "delegation.token.secret.key": "a secret of the cluster",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "connection.failed.authentication.delay.ms": "0",
}


def certificates(folder: Path) -> dict[str, str]:
    """Make an authority and a key of the node; return the settings of the listener's stores, and write `ca.pem` for its clients."""
    authority = DevelopmentAuthority.create(int(time.time() * 1000))
    node = authority.issue("CN=node", hosts=["127.0.0.1"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.pem").write_text(authority.certificate)
    (folder / "node.pem").write_text(node.key + node.certificate)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "node.pem")}


class OurUsers(BarnabasProcess):
    """A node with a listener of users; its settings are in a file, because they have secrets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sasl = f"127.0.0.1:{free_port()}"
        lines = {
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},SASL://{self.sasl}",
            "log.dirs": str(self.data_dir),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            **SETTINGS,
            **certificates(folder),
        }
        (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.folder / "server.properties")]

    def trust(self) -> dict[str, str]:
        return trust(self.folder)


class TheirUsers(ApacheKafka):
    """The same of Apache Kafka."""

    name = "apache-kafka"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sasl = f"127.0.0.1:{free_port()}"
        self.settings = {
            **SETTINGS,
            **certificates(folder),
            "listeners": f"{self.properties()['listeners']},SASL://{self.sasl}",
            "offsets.topic.num.partitions": "1",
        }

    def trust(self) -> dict[str, str]:
        return trust(self.folder)


def trust(folder: Path) -> dict[str, str]:
    """Return the settings of a client that trusts the node of this folder."""
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}


def password_of(user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="{user}" password="{user}-secret";',
    }


def scram(user: str, password: str, mechanism: str = "SCRAM-SHA-512", more: str = "") -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM} required username="{user}" password="{password}"{more};',
    }


def login_with(token_id: str, hmac: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    return scram(token_id, hmac, mechanism, ' tokenauth="true"')


def without_figures(printed: str) -> str:
    """Return what a tool prints of a load, with N for each figure; of the lines about the load so far only the last."""
    last = max((at for at, line in enumerate(printed.splitlines()) if "records sent" in line), default=-1)
    code, *lines = [line for at, line in enumerate(printed.splitlines()) if at == last or "records sent" not in line]
    figures = r"-?(\d+([.,:]\d+)*(E-?\d+)?|NaN|Infinity)(?![\w.])"
    return "\n".join([code, *(re.sub(figures, "N", line) for line in lines)])


class Transcript:
    """What Kafka's tools print on one broker, with the same names for the tokens of both."""

    def __init__(self, tools: ToolProcess, broker: OurUsers | TheirUsers) -> None:
        self._tools = tools
        self._broker = broker
        self._names: dict[str, str] = {}
        self._printed: list[str] = []

    def run(
        self, tool: str, settings: dict[str, str], *args: str, stdin: str | None = None, is_load: bool = False
    ) -> str:
        """Run a tool, note what it prints, and return it as it is.

        Args:
            settings: of a user's login; {} for the listener without one.
            is_load: its figures are those of a load, which no two runs have alike.
        """
        file = self._tools.log.parent / "client.properties"
        limits = {"default.api.timeout.ms": "20000", "request.timeout.ms": "10000"}
        lines = {**limits, **self._broker.trust(), **settings} if settings else limits
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        address = self._broker.sasl if settings else self._broker.bootstrap_servers
        words = ("--bootstrap-server", address, "--command-config", str(file), *args)
        printed = self._tools.run(tool, *words, stdin=stdin)
        self._printed.append(f"$ {tool} {' '.join(args)}\n{without_figures(printed) if is_load else printed}")
        return printed

    def lines(self) -> list[str]:
        """Return all that was printed, without Java's stack traces, sorted for each tool: Apache Kafka's tokens are in a hash table."""
        return [
            line
            for each in self._printed
            for line in sorted(self._normal(each).splitlines())
            if not re.match(r"\s*(at |\.\.\. )", line)
        ]

    def create(self, name: str, user: str, *args: str) -> tuple[str, str]:
        """Create a token, and return its id and its HMAC."""
        printed = self.run("delegation-tokens", password_of(user), "--create", "--max-life-time-period", "-1", *args)
        token_id, hmac = re.findall(r"^([\w-]{22}) +([\w+/]{86}==)", printed, re.M)[0]
        self._names |= {token_id: f"(id of {name})", hmac: f"(HMAC of {name})"}
        return token_id, hmac

    def _normal(self, text: str) -> str:
        for secret, name in self._names.items():
            text = text.replace(secret, name)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "(time)", text)
        # Apache Kafka shows its request object here, with its address in memory.
        text = re.sub(r"Request Request\(.*", "", text)
        return re.sub(r" {2,}", "  ", text.replace(self._broker.sasl, "(address)"))
