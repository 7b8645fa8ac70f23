"""The quorum that a node's settings name: `controller.quorum.voters` and `controller.quorum.bootstrap.servers`; and the voters
of `--initial-controllers`.

- The voters of a static quorum have no directory ids (`ZERO_UUID`), as in Kafka with kraft.version 0. Their one endpoint has the
  name of the first listener of `controller.listener.names`.
- A node is alone if it has both roles and its settings name no other node. Only then may it format an empty directory by itself:
  where others are named, it would found a second cluster.
- Voters have ids, bootstrap servers only addresses. An address is this node's if it has the port of one of its controller
  listeners, and that listener's host: bound, advertised, or of the loopback interface. A name that only DNS knows counts as
  another node's; formatting with `--standalone` settles it.

Source: Kafka's `QuorumConfig`, KIP-595, KIP-853.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from barnabas.config.endpoints import Listener, parse_port
from barnabas.metadata.config_schema import ConfigError, ConfigValue
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, uuid_from_str
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.words.printable import printable

__all__ = [
    "BOOTSTRAP_SERVERS",
    "VOTERS",
    "is_alone",
    "parse_bootstrap_servers",
    "parse_initial_controllers",
    "parse_voters",
]

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"

_EVERY_ADDRESS = ("", "0.0.0.0", "::")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ID_MAX = (1 << 31) - 1


def parse_voters(value: Callable[[str], ConfigValue]) -> tuple[Voter, ...]:
    """Return the voters of a static quorum, in id order; none if the setting is empty.

    Args:
        value: returns a broker setting's value by Kafka's name.

    Raises:
        ConfigError: an entry is not ID@HOST:PORT, or two have one id.
    """
    names = value("controller.listener.names")
    assert isinstance(names, tuple), names
    name = names[0].upper() if names else "CONTROLLER"
    voters: dict[int, Voter] = {}
    for entry in _entries(value, VOTERS):
        id_text, _, address = entry.partition("@")
        node_id, found = _node_id(id_text), _address(address)
        if node_id is None or found is None:
            raise ConfigError(
                f"{VOTERS}={printable(entry)}: must be ID@HOST:PORT, as in 1@localhost:9093,2@localhost:9094"
            )
        if node_id in voters:
            raise ConfigError(f"{VOTERS} names node {node_id} twice")
        if found[0] == "0.0.0.0":
            raise ConfigError(f"{VOTERS}={printable(entry)}: nobody can dial 0.0.0.0; name an address of that node")
        voters[node_id] = Voter(node_id, ZERO_UUID, (VoterEndpoint(name, *found),))
    return tuple(voters[node_id] for node_id in sorted(voters))


def parse_bootstrap_servers(value: Callable[[str], ConfigValue]) -> tuple[tuple[str, int], ...]:
    """Return host and port of each bootstrap server of the quorum.

    Raises:
        ConfigError: an entry is not HOST:PORT.
    """
    servers = []
    for entry in _entries(value, BOOTSTRAP_SERVERS):
        found = _address(entry)
        if found is None or "@" in found[0]:
            raise ConfigError(f"{BOOTSTRAP_SERVERS}={printable(entry)}: must be HOST:PORT, as in localhost:9093")
        servers.append(found)
    return tuple(servers)


def parse_initial_controllers(text: str, listener_name: str) -> VoterSet:
    """Return the voters of `--initial-controllers`: ID@HOST:PORT:DIRECTORY-ID, separated by commas.

    Raises:
        ConfigError: an entry has another form, or two name one node or one directory.
    """
    voters: dict[int, Voter] = {}
    for entry in text.split(","):
        id_text, _, rest = entry.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        node_id, found, directory_id = _node_id(id_text), _address(address), _directory_id(directory)
        if node_id is None or found is None or directory_id is None:
            raise ConfigError(
                f"--initial-controllers {printable(entry.strip())}: must be ID@HOST:PORT:DIRECTORY-ID "
                "(`barnabas storage random-uuid` prints a directory id)"
            )
        if node_id in voters:
            raise ConfigError(f"--initial-controllers names node {node_id} twice")
        if any(voter.directory_id == directory_id for voter in voters.values()):
            raise ConfigError(f"--initial-controllers names directory {directory} twice; each node has its own")
        voters[node_id] = Voter(node_id, directory_id, (VoterEndpoint(listener_name, *found),))
    return VoterSet.of(voters.values())


def is_alone(
    node_id: int,
    voters: Sequence[Voter],
    servers: Sequence[tuple[str, int]],
    listeners: Sequence[Listener],
    advertised: Sequence[Listener],
) -> bool:
    """Return whether the settings of a node name no other node.

    Args:
        listeners: this node's controller listeners; without one, any address of the loopback interface is this node's.
        advertised: its advertised addresses.
    """
    if voters:
        return all(voter.id == node_id for voter in voters)
    own = set(_own_addresses(listeners, advertised))
    return all(server in own or (not listeners and server[0] in _LOOPBACK) for server in servers)


def _own_addresses(listeners: Iterable[Listener], advertised: Sequence[Listener]) -> Iterator[tuple[str, int]]:
    for listener in listeners:
        yield listener.host, listener.port
        if listener.host in (*_EVERY_ADDRESS, *_LOOPBACK):
            yield from ((host, listener.port) for host in _LOOPBACK)
        for each in advertised:
            # Where clients find this machine, the controllers do, too.
            yield each.host, listener.port
            if each.name == listener.name:
                yield each.host, each.port


def _entries(value: Callable[[str], ConfigValue], name: str) -> tuple[str, ...]:
    listed = value(name)
    assert isinstance(listed, tuple), listed
    return listed


def _node_id(text: str) -> int | None:
    # int() reads other digits than ours, and refuses thousands of them.
    is_number = text.isascii() and text.isdigit() and len(text) <= 10
    return int(text) if is_number and int(text) <= _ID_MAX else None


def _directory_id(text: str) -> bytes | None:
    try:
        found = uuid_from_str(text)
    except ValueError:
        return None
    return None if found in (ZERO_UUID, ONE_UUID) else found


def _address(text: str) -> tuple[str, int] | None:
    host, colon, port_text = text.rpartition(":")
    port = parse_port(port_text)
    host = host.removeprefix("[").removesuffix("]")
    return None if not colon or not host or port is None else (host, port)
