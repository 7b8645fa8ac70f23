"""Which program runs at an address: Apache Kafka or barnabas?

Both speak one protocol, and the name of a client's software is the client's. The sign is the meaning of `SIGN` in the answer to
DescribeConfigs about the node itself: both programs have that setting, each describes it in its own words, and brokers and controllers
of both answer.

Neither says its version. The highest `metadata.version` that it supports tells its release.

Limits: the login needs the right to DESCRIBE_CONFIGS of the cluster; without it the program is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.configs import ResourceType
from barnabas.client.errors import ConnectionRefused
from barnabas.client.features import METADATA_VERSION, features_at
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import KafkaError, RetriableError
from barnabas.settings_table import settings_of

__all__ = ["Program", "SeenProgram", "describe_programs", "is_ours", "other_program", "program_at"]

SIGN = "queued.max.request.bytes"
_OURS = next(each.meaning for each in settings_of("broker") if each.name == SIGN)
_DIAL_MS = 1_000
_SINCE = 3
"""The first version of DescribeConfigs that returns meanings."""


class Program(Enum):
    """The program that answers at the address of a node.

    Attributes:
        STOPPED: nothing listens there.
        SILENT: something listens, or may listen, and does not answer (yet): the node starts, stops, or cannot be reached.
        UNKNOWN: it answers, and what it is cannot be seen.
    """

    KAFKA = "Apache Kafka"
    BARNABAS = "barnabas"
    STOPPED = "stopped"
    SILENT = "silent"
    UNKNOWN = "unknown"


class SeenProgram(NamedTuple):
    """A program.

    Attributes:
        why: why it is not known; empty if it is.
        supports: the highest level of `metadata.version` that the node supports; None if it does not say.
    """

    program: Program
    why: str = ""
    supports: int | None = None


def is_ours(documentation: str | None) -> bool:
    """Return whether a node that describes `SIGN` so is barnabas."""
    return documentation == _OURS


def other_program(program: Program) -> Program:
    """Return the program that a node changes from, or to."""
    return Program.KAFKA if program == Program.BARNABAS else Program.BARNABAS


def program_at(connect: Callable[[], BlockingConnection], node_id: int) -> SeenProgram:
    """Return the program of a node.

    Args:
        connect: dials one address of the node.
    """
    try:
        with connect() as connection:
            return _seen(connection, node_id)
    except KafkaError as error:
        return _unseen(error)


def describe_programs(
    cluster: Cluster, controllers: Mapping[int, tuple[str, int]] | None = None
) -> dict[int, SeenProgram]:
    """Return the program of each broker that serves, and of these controllers.

    Args:
        controllers: the host and port of each.

    Raises:
        KafkaError: no broker answers.
    """
    answers = cluster.ask_nodes(_seen)
    found = {node: _unseen(each) if isinstance(each, KafkaError) else each for node, each in answers.items()}
    for node, address in (controllers or {}).items():
        dial = partial(
            BlockingConnection, *address, client_id=cluster.client_id, timeout_ms=_DIAL_MS, security=cluster.security
        )
        found[node] = program_at(dial, node)
    return found


def _seen(connection: BlockingConnection, node_id: int) -> SeenProgram:
    features = features_at(connection)
    levels = None if isinstance(features, KafkaError) else features.supported.get(METADATA_VERSION)
    return SeenProgram(_program_of(connection, node_id), supports=None if levels is None else levels[1])


def _unseen(error: KafkaError) -> SeenProgram:
    if isinstance(error, ConnectionRefused):
        return SeenProgram(Program.STOPPED, error.message)
    return SeenProgram(Program.SILENT if isinstance(error, RetriableError) else Program.UNKNOWN, error.message)


def _program_of(connection: BlockingConnection, node_id: int) -> Program:
    request_class = messages.DescribeConfigsRequest
    if not connection.supports(ApiKey.DESCRIBE_CONFIGS, _SINCE):
        return Program.KAFKA
    resource = request_class.DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=str(node_id), configuration_keys=[SIGN]
    )
    [found] = connection.request(request_class(resources=[resource], include_documentation=True)).results
    error = outcome_of(found.error_code, found.error_message)
    if error is not None:
        raise error
    has_sign = any(each.name == SIGN and is_ours(each.documentation) for each in found.configs)
    return Program.BARNABAS if has_sign else Program.KAFKA
