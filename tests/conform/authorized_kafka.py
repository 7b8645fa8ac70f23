"""Apache Kafka with TLS, logins and an authorizer, as a production cluster has them.

PLAINTEXT   on loopback, for the test itself: its user is a super user
SASL_SSL    SCRAM-SHA-512 and PLAIN
SSL         with the client's certificate
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from apache_kafka import ApacheKafka, free_port

from barnabas.security.dev_certificates import DevelopmentAuthority


class AuthorizedKafka(ApacheKafka):
    """One node with users who may do what ACLs say.

    Args:
        users: passwords by name, for both mechanisms.
    """

    def __init__(self, folder: Path, authority: DevelopmentAuthority, users: Mapping[str, str]) -> None:
        super().__init__(folder, heap="512m")
        self.sasl_port, self.ssl_port = free_port(), free_port()
        scram = (f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in users.items())
        self.format_options = tuple(part for each in scram for part in ("--add-scram", each))
        folder.mkdir(parents=True, exist_ok=True)
        node = authority.issue("CN=node", hosts=["127.0.0.1"])
        (folder / "node.pem").write_text(node.key + node.certificate)
        (folder / "authority.pem").write_text(authority.certificate)
        plain = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        self.settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
            f",SASL_SSL://127.0.0.1:{self.sasl_port},SSL://127.0.0.1:{self.ssl_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {plain};"
            ),
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "authority.pem"),
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The test, the broker and the controller.
            "super.users": "User:ANONYMOUS",
        }

    @property
    def sasl_servers(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    @property
    def ssl_servers(self) -> str:
        return f"127.0.0.1:{self.ssl_port}"
