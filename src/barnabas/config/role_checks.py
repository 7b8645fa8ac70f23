"""Roles and quorum: settings of one node that contradict each other end the start, in one line with a remedy.

A file that names `process.roles` is rejected for the reasons for which Apache Kafka rejects it. Two kinds of file get along with less:

- A file without `process.roles` describes a node alone; only what names other nodes is an error then.
- A node alone needs no quorum, no controller listener and no listener for other brokers: there is nobody to reach it there.

Source: Kafka's `KafkaConfig.validateValues` and `AbstractKafkaConfig`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from itertools import combinations

from barnabas.config.endpoints import PROTOCOL_MAP, Listener, security_protocols
from barnabas.config.inter_broker_listener import INTER_BROKER_LISTENER, INTER_BROKER_PROTOCOL
from barnabas.config.node_roles import NodeRoles
from barnabas.config.quorum_config import BOOTSTRAP_SERVERS, VOTERS
from barnabas.metadata.config_schema import ConfigError
from barnabas.words.printable import printable

__all__ = ["check_roles"]

_CONTROLLER_NAMES = "controller.listener.names"


def check_roles(config: NodeRoles, given: Mapping[str, str]) -> None:
    """Reject settings of roles, quorum and listeners that contradict each other.

    Args:
        given: the properties as the user gave them, without what one node implies.

    Raises:
        ConfigError: some do.
    """
    if "process.roles" not in given:
        if not config.is_alone:
            named = VOTERS if config.quorum_voters else BOOTSTRAP_SERVERS
            raise ConfigError(
                f"{named} names other nodes, but process.roles is not set: set it to broker, controller or broker,controller"
            )
        return
    _check_names(config, given)
    _check_quorum(config)
    _check_protocol_map(config, given)
    if config.is_controller:
        _check_controller(config)
    if config.is_broker:
        _check_broker(config, given)
    elif config.inter_broker_listener.is_given and config.inter_broker_listener.name in _names(
        config.controller_listeners
    ):
        named = f"{INTER_BROKER_LISTENER}={given[INTER_BROKER_LISTENER]}"
        raise ConfigError(f"{named} is a listener of controllers; remove the setting")
    _check_ports((*config.listeners, *config.controller_listeners))
    for each in (*(config.advertised_listeners or ()), *config.advertised_controller_listeners):
        if each.host == "0.0.0.0":
            raise ConfigError("advertised.listeners: nobody can dial 0.0.0.0; name an address of this node")


def _roles(config: NodeRoles) -> str:
    return f"process.roles={','.join(config.process_roles)}"


def _check_names(config: NodeRoles, given: Mapping[str, str]) -> None:
    """Reject a node without roles, an id of its own, or the name of the controllers' listener."""
    if not config.process_roles:
        raise ConfigError("process.roles is empty: set it to broker, controller or broker,controller")
    if "node.id" in given and given.get("broker.id", given["node.id"]) != given["node.id"]:
        raise ConfigError(
            f"node.id={given['node.id']} and broker.id={given['broker.id']} differ: they are two names of one setting; "
            "remove broker.id"
        )
    if config.is_alone:
        return
    if "node.id" not in given and "broker.id" not in given:
        raise ConfigError("node.id is not set: each node of a cluster has a number of its own, as in node.id=1")
    if not config.list_value(_CONTROLLER_NAMES) or _CONTROLLER_NAMES not in given:
        raise ConfigError(f"{_CONTROLLER_NAMES} is not set: it names the listener of the controllers, as in CONTROLLER")


def _check_quorum(config: NodeRoles) -> None:
    """Reject a node that has no quorum, or another part in it than its roles say."""
    voters = [voter.id for voter in config.quorum_voters]
    is_both = config.is_broker and config.is_controller
    if not voters and not config.quorum_bootstrap_servers and not is_both:
        raise ConfigError(
            f"{_roles(config)} needs the addresses of the controllers: "
            f"set {BOOTSTRAP_SERVERS}=HOST:PORT,... or {VOTERS}=ID@HOST:PORT,..."
        )
    listed = ", ".join(map(str, voters))
    if config.is_controller and voters and config.node_id not in voters:
        raise ConfigError(
            f"{VOTERS} names the nodes {listed}, but not this controller, which has node.id={config.node_id}"
        )
    if not config.is_controller and config.node_id in voters:
        raise ConfigError(
            f"{VOTERS} names node {config.node_id}, which is this one, but {_roles(config)} makes it no controller"
        )
    if not config.is_controller and config.bool_value("controller.quorum.auto.join.enable"):
        raise ConfigError(f"controller.quorum.auto.join.enable=true is for controllers, not for {_roles(config)}")


def _check_protocol_map(config: NodeRoles, given: Mapping[str, str]) -> None:
    """Reject listeners of controllers without a protocol; `endpoints` checks the other listeners."""
    used = {each.security_protocol for each in (*config.listeners, *config.controller_listeners)}
    if PROTOCOL_MAP not in given and used <= {"PLAINTEXT"}:
        return
    if PROTOCOL_MAP not in given and config.is_alone:
        return
    mapped = security_protocols(given.get(PROTOCOL_MAP, config.str_value(PROTOCOL_MAP)))
    for name in config.list_value(_CONTROLLER_NAMES):
        if name.upper() not in mapped and not (config.is_alone and not config.controller_listeners):
            raise ConfigError(
                f"{PROTOCOL_MAP} has no entry for the controllers' listener {printable(name)}; add {printable(name)}:PLAINTEXT"
            )


def _check_controller(config: NodeRoles) -> None:
    own = _names(config.controller_listeners)
    if not config.is_broker and config.listeners:
        raise ConfigError(
            f"listeners has {config.listeners[0].name}, but {_roles(config)} listens to controllers and brokers alone; "
            f"leave only the listeners of {_CONTROLLER_NAMES}={_controller_names(config)}, as in CONTROLLER://:9093"
        )
    missing = [name for name in config.list_value(_CONTROLLER_NAMES) if name.upper() not in own]
    # A node alone may do without, but not with one of several.
    if missing and (own or not config.is_alone):
        raise ConfigError(
            f"{_CONTROLLER_NAMES} names {printable(missing[0])}, which is not one of the listeners; "
            f"add {printable(missing[0])}://:9093 to listeners"
        )


def _check_broker(config: NodeRoles, given: Mapping[str, str]) -> None:
    if not config.is_controller and config.controller_listeners:
        name = config.controller_listeners[0].name
        raise ConfigError(
            f"{name} in listeners is a listener of controllers, and this node is no controller ({_roles(config)}); "
            f"remove {name} from listeners"
        )
    advertised = config.advertised_listeners
    names = _names(config.listeners if advertised is None else advertised)
    if not names:
        where = "listeners" if advertised is None else "advertised.listeners"
        raise ConfigError(
            f"{where} has no listener for clients: all are in {_CONTROLLER_NAMES}={_controller_names(config)}; "
            "add one, as in PLAINTEXT://localhost:9092"
        )
    if INTER_BROKER_LISTENER in given and INTER_BROKER_PROTOCOL in given:
        raise ConfigError(f"set one of {INTER_BROKER_LISTENER} and {INTER_BROKER_PROTOCOL}, not both")
    wanted = config.inter_broker_listener
    if wanted.name not in names and (wanted.is_given or not config.is_alone):
        whose = (
            f"{INTER_BROKER_LISTENER}={printable(given[INTER_BROKER_LISTENER])}"
            if wanted.is_given
            else f"{INTER_BROKER_LISTENER} is {wanted.name} by default, which"
        )
        raise ConfigError(
            f"{whose} is not a listener that this broker advertises: {', '.join(names)}; name one of these"
        )


def _check_ports(listeners: Iterable[Listener]) -> None:
    """Reject two listeners with one port, unless one is of IPv4 and the other of IPv6."""
    for one, other in combinations(listeners, 2):
        if one.port == other.port > 0 and {_family(one.host), _family(other.host)} != {4, 6}:
            raise ConfigError(
                f"the listeners {one.name} and {other.name} have the same port {one.port}; give each its own"
            )


def _family(host: str) -> int:
    """Return the version of an IP address, 0 for a name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def _names(listeners: Iterable[Listener]) -> list[str]:
    return [printable(listener.name) for listener in listeners]


def _controller_names(config: NodeRoles) -> str:
    return printable(",".join(config.list_value(_CONTROLLER_NAMES)))
