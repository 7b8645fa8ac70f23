"""The principals that other nodes see when this node dials them, and the check that they are super users.

    protocol of the dialled listener    principal
    PLAINTEXT                           User:ANONYMOUS
    SSL                                 the name of this node's certificate; User:ANONYMOUS if listeners ask for no certificate
    SASL_PLAINTEXT, SASL_SSL            the username of PLAIN or SCRAM; unknown with a token

- Voters speak before any of them has loaded the access control lists, and until then only super users get an answer. So a voter that is
  no super user stops its start. A broker can do with access control lists; it warns.
- The other nodes decide by their own settings. This check takes it that they have the same, and it says nothing about what it cannot know.

Source: none in Kafka, where such a quorum logs refusals and never forms; KIP-801.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterator

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.listener_security import (
    CONTROLLER_MECHANISM,
    INTER_BROKER_MECHANISM,
    dialling_settings,
    listener_settings,
)
from barnabas.metadata.config_schema import ConfigError
from barnabas.security.certificate_names import PrincipalMapper, certificate_name
from barnabas.security.jaas import JaasEntry, parse_jaas
from barnabas.security.key_stores import key_store
from barnabas.security.principal import ANONYMOUS, USER, Principal
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.printable import printable

__all__ = ["check_super_users", "own_principal"]

_END = "-----END CERTIFICATE-----"


def check_super_users(config: BrokerConfig, super_users: Collection[str]) -> list[str]:
    """Return a warning for each way to other nodes on which this node is no super user.

    Args:
        super_users: principals, `Type:name`.

    Raises:
        CannotStart: this node and the other voters form no quorum.
    """
    warnings = []
    for others, name, mechanism in _ways(config):
        principal = own_principal(config, name, mechanism)
        if principal is None or str(principal) in super_users:
            continue
        shown = printable(str(principal))
        if others == "controllers" and config.has_other_voters:
            raise CannotStart(
                f"super.users does not name {shown}, as whom this controller speaks to the other voters: they load the access "
                f"control lists only after the quorum has formed. Add {shown} to super.users of every node"
            )
        warnings.append(
            f"This node speaks to {others} as {shown}, which super.users does not name: it needs access control lists that allow "
            "CLUSTER_ACTION on the cluster and DESCRIBE on every topic"
        )
    return warnings


def _ways(config: BrokerConfig) -> Iterator[tuple[str, str, str]]:
    """Yield other nodes, the listener at which this node dials them, and the setting of the mechanism."""
    if config.is_alone:
        return
    names = config.list_value("controller.listener.names")
    if names and (config.is_broker or config.has_other_voters):
        yield "controllers", names[0], CONTROLLER_MECHANISM
    if config.is_broker:
        yield "brokers", config.inter_broker_listener.name, INTER_BROKER_MECHANISM


def own_principal(config: BrokerConfig, name: str, mechanism_setting_name: str) -> Principal | None:
    """Return who this node is at a listener of another node; None if that cannot be known here.

    Args:
        name: the listener's.
        mechanism_setting_name: the setting that has the mechanism of the login.
    """
    try:
        settings = dialling_settings(config, name, mechanism_setting_name)
        protocol = settings["security.protocol"]
        if protocol.startswith("SASL"):
            return _user(settings["sasl.mechanism"], parse_jaas(settings["sasl.jaas.config"]))
        return _certified(listener_settings(config.properties, name)) if protocol == "SSL" else ANONYMOUS
    except (ConfigError, SecuritySettingError, ValueError):
        # The start ends where the setting is used, or the certificate is another name there.
        return None


def _user(mechanism: str, login: JaasEntry) -> Principal | None:
    user = login.options.get("username")
    is_by_token = login.options.get("tokenauth", "").lower() == "true"
    return None if user is None or is_by_token or mechanism == "OAUTHBEARER" else Principal(USER, user)


def _certified(settings: dict[str, str]) -> Principal:
    """Return the principal of this node's certificate.

    Raises:
        ValueError: no rule maps its name.
        SecuritySettingError: the key store cannot be read.
    """
    store = key_store(settings)
    if store is None or settings.get("ssl.client.auth", "none") == "none":
        return ANONYMOUS
    first = store.chain[: store.chain.index(_END) + len(_END)]
    name = certificate_name(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN") :]))
    return Principal(USER, PrincipalMapper(settings.get("ssl.principal.mapping.rules", "DEFAULT"))(name))
