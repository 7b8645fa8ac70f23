"""The kinds of faults that the HTTP API takes, and the method of `barnabas.Cluster` that each of them calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.embedded.cluster import Cluster
from barnabas.embedded.fault_fields import BadOrder, Field, checked
from barnabas.embedded.fault_tickets import InjectedFault
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

__all__ = ["KINDS", "WHERE", "order"]

_SECONDS = Field("seconds", "number", "how long, such as 0.5", True)
_NODE = Field("node", "node", "the node", True)
_API = Field("api", "api", "Kafka's name of the API, such as Produce, Fetch, OffsetCommit, or its key", True)
_ANY_API = _API._replace(is_needed=False, what=f"{_API.what}; every API without it")
_ERROR = Field("error", "api", "Kafka's name of the error, such as NOT_LEADER_OR_FOLLOWER, or its code", True)
WHERE = (
    Field("node", "node", "only requests to this node"),
    Field("topic", "text", "only requests that name this topic"),
    Field("partition", "whole number", "only requests that name this partition"),
    Field("client_id", "text", "only requests of this client"),
    Field("group", "text", "only requests that name this group"),
)
_REQUESTS = (
    Field("times", "times", "how many requests; null for all; 1 without it"),
    Field("nth", "whole number", "the first request that it meets, counted from 1"),
    *WHERE,
)


class Kind(NamedTuple):
    """A kind of faults.

    Attributes:
        method: of `barnabas.Cluster`.
        renamed: the arguments of the method that have another name than the field.
    """

    what: str
    method: str
    fields: tuple[Field, ...]
    renamed: Mapping[str, str] = {}


KINDS: dict[str, Kind] = {
    "fail": Kind("the node answers with the error, and carries nothing out", "fail", (_API, _ERROR, *_REQUESTS)),
    "drop_response": Kind(
        "the request is carried out, and the connection closes instead of the response",
        "drop_response_after_write",
        (_API, *_REQUESTS),
    ),
    "drop_connection": Kind(
        "the connection closes, and the request is not carried out", "drop_connection", (_API, *_REQUESTS)
    ),
    "delay_request": Kind(
        "the request waits before it is carried out", "delay_request", (_ANY_API, _SECONDS, *_REQUESTS)
    ),
    "delay_response": Kind(
        "the request is carried out, and its response waits", "delay_response", (_ANY_API, _SECONDS, *_REQUESTS)
    ),
    "duplicate_response": Kind("the response is sent twice", "duplicate_response", (_API, *_REQUESTS)),
    "partition": Kind(
        "silence between nodes, both ways",
        "partition",
        (
            Field("left", "nodes", "nodes of one side", True),
            Field("right", "nodes", "nodes of the other side", True),
        ),
    ),
    "cut": Kind(
        "silence one way: nothing that the first nodes send reaches the second ones",
        "cut",
        (Field("from", "nodes", "who sends in vain", True), Field("to", "nodes", "whom it does not reach", True)),
        {"from": "source", "to": "target"},
    ),
    "delay": Kind(
        "everything that two nodes send each other is late; with one node, everything between it and all others and each request to it",
        "delay",
        (Field("between", "pair", "two nodes, or one", True), _SECONDS),
    ),
    "disk_full": Kind("each write of the node's disk fails; a node without another disk ends", "fill_disk", (_NODE,)),
    "disk_slow": Kind(
        "each write and each sync of the node's disk takes so much longer", "slow_disk", (_NODE, _SECONDS)
    ),
    "clock": Kind(
        "the wall clocks are ahead, or behind if negative; session timeouts do not notice",
        "move_clock",
        (_SECONDS, Field("nodes", "nodes", "the nodes; all without it")),
        {"nodes": "of"},
    ),
}


def order(cluster: Cluster, given: object) -> InjectedFault:
    """Order the fault that a JSON object names.

    Raises:
        BadOrder, TypeError, ValueError: the text says what is wrong.
    """
    names = ", ".join(KINDS)
    if not isinstance(given, Mapping) or "kind" not in given:
        raise BadOrder(f'a fault needs a JSON object with a kind: send {{"kind": …}} with one of {names}')
    kind = given["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        raise BadOrder(f"there is no fault of kind {printable(str(kind))}{hint or f': send one of {names}'}")
    chosen = KINDS[kind]
    fields = checked({name: value for name, value in given.items() if name != "kind"}, chosen.fields, f"a fault {kind}")
    if "api" not in fields and _ANY_API in chosen.fields:
        fields["api"] = None
    arguments: dict[str, Any] = {chosen.renamed.get(name, name): value for name, value in fields.items()}
    found: InjectedFault = getattr(cluster, chosen.method)(**arguments)
    return found
