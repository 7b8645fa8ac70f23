"""The settings of nodes and clients in a cluster for tests and development: one security protocol on every link.

    client ──┐
    broker ──┴─► listener PROTOCOL://        SSL: a certificate; SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
    node ──────► listener CONTROLLER://      SSL: a certificate, required; SASL: PLAIN, which works among voters

- `admin` is a user like the others, and a super user. With SASL the nodes log in as `admin`; with SSL their certificates have the names
  `node-1`, `node-2`, …
- With SSL the principal of `CN=alice` is `User:alice`, as it is with SASL, so the same ACLs hold with every protocol.

The names are Kafka's. The settings of a node have passwords and a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.security.jaas import jaas_text

__all__ = [
    "ADMIN",
    "CLIENT_MECHANISMS",
    "CONTROLLER",
    "SECURED_PROTOCOLS",
    "client_login",
    "node_settings",
]

ADMIN = "admin"
CONTROLLER = "CONTROLLER"
SECURED_PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLIENT_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def node_settings(
    protocol: str,
    *,
    stores: Mapping[str, str],
    users: Mapping[str, str],
    nodes: Iterable[str],
    is_alone: bool,
    asks_certificates: bool,
    has_authorizer: bool,
) -> dict[str, str]:
    """Return the settings of security of one node; its listeners are not among them.

    Args:
        protocol: one of `SECURED_PROTOCOLS`; also the name of the listener for clients.
        stores: `ssl.keystore.*` and `ssl.truststore.*` of this node; empty without TLS.
        users: password by name; `ADMIN` is one of them.
        nodes: the names in the nodes' certificates.
        is_alone: the node has no other node, and no listener for controllers.
        asks_certificates: with SSL, clients must show a certificate.
        has_authorizer: ACLs decide.
    """
    found = dict(stores)
    if not is_alone:
        found["listener.security.protocol.map"] = f"{protocol}:{protocol},{CONTROLLER}:{protocol}"
        found["inter.broker.listener.name"] = protocol
    if protocol == "SSL":
        if asks_certificates:
            found["listener.name.ssl.ssl.client.auth"] = "required"
        if not is_alone:
            found["listener.name.controller.ssl.client.auth"] = "required"
        found["ssl.principal.mapping.rules"] = "RULE:^CN=([^,]+)$/$1/,DEFAULT"
    else:
        found |= _logins(protocol, users, is_alone=is_alone)
    if has_authorizer:
        supers = [ADMIN, *nodes] if protocol == "SSL" else [ADMIN]
        found["authorizer.class.name"] = _AUTHORIZER
        found["super.users"] = ";".join(f"User:{name}" for name in supers)
    return found


def _logins(protocol: str, users: Mapping[str, str], *, is_alone: bool) -> dict[str, str]:
    own = {} if is_alone else {"username": ADMIN, "password": users[ADMIN]}
    listed = {f"user_{name}": password for name, password in users.items()}
    prefix = f"listener.name.{protocol.lower()}."
    found = {
        f"{prefix}sasl.enabled.mechanisms": ",".join(CLIENT_MECHANISMS),
        f"{prefix}plain.sasl.jaas.config": jaas_text(_PLAIN, {**own, **listed}),
    }
    if not is_alone:
        prefix = f"listener.name.{CONTROLLER.lower()}."
        found |= {
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{prefix}sasl.enabled.mechanisms": "PLAIN",
            f"{prefix}plain.sasl.jaas.config": jaas_text(_PLAIN, {**own, f"user_{ADMIN}": users[ADMIN]}),
        }
    return found


def client_login(mechanism: str, user: str, password: str) -> dict[str, str]:
    """Return the settings of a client by which it logs in."""
    module = _PLAIN if mechanism == "PLAIN" else _SCRAM
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas_text(module, {"username": user, "password": password}),
    }
