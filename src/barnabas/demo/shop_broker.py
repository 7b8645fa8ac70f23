"""Where the demo's broker is, and how its processes connect to it.

The processes get the name of the file that says how to log in, and each reads it: no secret is on a command line or in a pipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.cli.session import client_security_of, read_command_config
from barnabas.client.admin import Admin
from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.security.client_security import ClientSecurity

__all__ = ["ShopBroker"]


@dataclass(frozen=True, slots=True)
class ShopBroker:
    """A broker, or a cluster, of the demo.

    Attributes:
        servers: HOST:PORT, several with commas.
        config: a client's properties file, as for --command-config; None connects in plain text.
    """

    servers: str
    config: Path | None = None

    def admin(self) -> Admin:
        """Return an administrative client.

        Raises:
            Failure: a setting in the file cannot be used.
        """
        return Admin(self.servers, security=self._security())

    def library_settings(self) -> dict[str, Any]:
        """Return what a client of librdkafka needs to connect; it has secrets.

        Raises:
            Failure: a setting in the file cannot be used.
        """
        security = self._security()
        return {"bootstrap.servers": self.servers, **(librdkafka_security(security) if security else {})}

    def _security(self) -> ClientSecurity | None:
        return client_security_of(read_command_config(str(self.config))) if self.config else None
