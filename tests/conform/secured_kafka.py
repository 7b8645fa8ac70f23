"""Apache Kafka with a listener of each security protocol, and the properties files of clients that it lets in.

    PLAINTEXT        for the tests themselves
    SSL              asks for a client's certificate
    SASL_PLAINTEXT   PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (unsecured tokens); a session of PLAIN ends after `SESSION_MS`
    SASL_SSL         the same mechanisms, sessions without an end

The user is `alice`; certificates are of an authority that lives as long as the test.
"""

from __future__ import annotations

import time
from pathlib import Path

from apache_kafka import ApacheKafka, free_port

from barnabas.security.dev_certificates import DevelopmentAuthority

PASSWORD = 'alice"s \\secret; is=long'
SCRAM_PASSWORD = "alice-secret"
STORE_PASSWORD = "store-secret"
SESSION_MS = 2_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULES = "org.apache.kafka.common.security."


def quoted(text: str) -> str:
    """Return a value as `sasl.jaas.config` spells it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def properties_text(settings: dict[str, str]) -> str:
    """Return settings as a Java properties file."""
    return "".join(f"{name}={value}\n".replace("\\", "\\\\") for name, value in settings.items())


class SecuredKafka(ApacheKafka):
    """One node with all four protocols."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, heap="512m")
        folder.mkdir(parents=True, exist_ok=True)
        self.ports = {name: free_port() for name in ("SSL", "SASL_PLAINTEXT", "SASL_SSL")}
        self.authority = DevelopmentAuthority.create(int(time.time() * 1000))
        node = self.authority.issue("CN=node", hosts=["localhost", "127.0.0.1"])
        self.user = self.authority.issue("CN=alice")
        self.ca = folder / "ca.pem"
        self.ca.write_text(self.authority.certificate)
        self._write("node.pem", node.key + node.certificate)
        self._write("alice.pem", self.user.key + self.user.certificate)
        (folder / "alice.p12").write_bytes(self.user.pkcs12(STORE_PASSWORD))
        (folder / "ca.p12").write_bytes(self.authority.trust_store(STORE_PASSWORD))
        scram = f"[name=alice,password={SCRAM_PASSWORD}]"
        self.format_options = tuple(word for name in MECHANISMS[1:3] for word in ("--add-scram", f"{name}={scram}"))
        self.settings = self._listeners()

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def _listeners(self) -> dict[str, str]:
        listeners = [f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()]
        plain, controller = f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self.controller_port}"
        settings = {
            "listeners": ",".join([plain, *listeners, controller]),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": str(SESSION_MS),
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{name}."
            settings[f"{prefix}plain.sasl.jaas.config"] = (
                f"{_MODULES}plain.PlainLoginModule required user_alice={quoted(PASSWORD)};"
            )
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                settings[f"{prefix}{mechanism}.sasl.jaas.config"] = f"{_MODULES}scram.ScramLoginModule required;"
            settings[f"{prefix}oauthbearer.sasl.jaas.config"] = (
                f'{_MODULES}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="node";'
            )
        return settings

    def properties(self) -> dict[str, str]:
        return {name: value.replace("\\", "\\\\") for name, value in super().properties().items()}

    def client(self, protocol: str, mechanism: str = "", stores: str = "PEM") -> dict[str, str]:
        """Return the settings of a client, in Java's names.

        Args:
            stores: PEM or PKCS12.
        """
        port = self.ports.get(protocol, self.port)
        settings = {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings |= self._trust(stores)
        if protocol == "SSL":
            settings |= self._key(stores)
        if mechanism:
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": _login(mechanism)}
        return settings

    def _trust(self, stores: str) -> dict[str, str]:
        if stores == "PEM":
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        return {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.folder / "ca.p12"),
            "ssl.truststore.password": STORE_PASSWORD,
        }

    def _key(self, stores: str) -> dict[str, str]:
        if stores == "PEM":
            return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.folder / "alice.pem")}
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.folder / "alice.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
        }


def _login(mechanism: str) -> str:
    if mechanism == "OAUTHBEARER":
        return f'{_MODULES}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    if mechanism == "PLAIN":
        return f'{_MODULES}plain.PlainLoginModule required username="alice" password={quoted(PASSWORD)};'
    return f'{_MODULES}scram.ScramLoginModule required username="alice" password="{SCRAM_PASSWORD}";'
