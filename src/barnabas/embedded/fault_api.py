"""The HTTP API of a `barnabas.Cluster`, without HTTP: a method, a path, a query and a JSON value in, a status and a JSON value out.

    GET /   ──► the cluster, every route, every kind of fault, and lines to try

`ROUTES` is the whole API: what a route answers, and what `GET /` says about it. Each route calls a method of the cluster, so a test in
another language can do what a test in Python does. A mistake is {"error": SENTENCE}, which says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from barnabas.config.cannot_start import CannotStart
from barnabas.embedded.cluster import Cluster
from barnabas.embedded.fault_fields import BadOrder, Field, checked, from_query
from barnabas.embedded.fault_orders import KINDS, WHERE, order
from barnabas.embedded.fault_tickets import InjectedFault
from barnabas.protocol.errors import KafkaError
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

__all__ = ["ROUTES", "FaultApi", "Reply", "Route"]

_TOPIC = Field("topic", "text", "the topic", True)
_PARTITION = Field("partition", "whole number", "the partition; 0 without it")
_TIMEOUT = Field("timeout", "number", "seconds to wait; 30 without it")
_PLACE = re.compile(r"\{(\w+)\}")


class Reply(NamedTuple):
    """An answer.

    Attributes:
        allow: the methods that a path has, if the request's is none of them.
    """

    status: HTTPStatus
    value: Any
    allow: tuple[str, ...] = ()


class Route(NamedTuple):
    """A route.

    Attributes:
        path: with names in braces for its variable parts, which are whole numbers.
        fields: of the JSON object of a POST, or of the query of a GET.
        answer: is called with the cluster, the variable parts and the fields.
    """

    method: str
    path: str
    what: str
    answer: Callable[[Cluster, dict[str, int], dict[str, Any]], Any]
    fields: tuple[Field, ...] = ()

    def shown(self) -> dict[str, Any]:
        where = "query" if self.method == "GET" else "body"
        fields = {where: {field.name: field.shown() for field in self.fields}} if self.fields else {}
        return {"request": f"{self.method} {self.path}", "what": self.what, **fields}


def _shown(fault: InjectedFault) -> dict[str, Any]:
    return {"id": fault.id, **fault.settings, "hits": fault.hits}


def _fault(cluster: Cluster, number: int) -> InjectedFault:
    for fault in cluster.faults:
        if fault.id == number:
            return fault
    raise LookupError(f"there is no fault {number}: GET /faults lists them")


def _remove(cluster: Cluster, number: int) -> dict[str, Any]:
    fault = _fault(cluster, number)
    shown = _shown(fault)
    fault.remove()
    return shown


def _heal(cluster: Cluster) -> list[dict[str, Any]]:
    shown = [_shown(fault) for fault in cluster.faults]
    cluster.heal()
    return shown


def _node(cluster: Cluster, node: int) -> dict[str, Any]:
    return {"node": node, "state": cluster.state(node), "address": cluster.address(node)}


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    return [_node(cluster, node) for node in cluster.nodes]


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "cluster_id": cluster.cluster_id,
        "data_dir": cluster.data_dir,
        "nodes": _nodes(cluster),
    }


def _act(method: str) -> Callable[[Cluster, dict[str, int], dict[str, Any]], Any]:
    """Return an answer that calls a method of the cluster with a node, and shows the node afterwards."""

    def answer(cluster: Cluster, parts: dict[str, int], fields: dict[str, Any]) -> Any:
        getattr(cluster, method)(parts["node"])
        return _node(cluster, parts["node"])

    return answer


def _replicas(cluster: Cluster, topic: str, partition: int = 0, timeout: float = 30.0) -> dict[str, Any]:
    leader = cluster.leader(topic, partition, timeout=timeout)
    return {
        "topic": topic,
        "partition": partition,
        "leader": leader,
        "in_sync": list(cluster.in_sync(topic, partition)),
    }


def _move(cluster: Cluster, fields: dict[str, Any]) -> dict[str, Any]:
    cluster.move_leader(**fields)
    return _replicas(cluster, fields["topic"], fields.get("partition", 0))


def _requests(cluster: Cluster, fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [found._asdict() for found in cluster.requests(fields.pop("api", None), **fields)]


ROUTES = (
    Route("GET", "/", "this page", lambda c, p, f: _cluster(c)),
    Route("GET", "/faults", "every fault, and how often each has struck", lambda c, p, f: list(map(_shown, c.faults))),
    Route("POST", "/faults", "order a fault; the kinds are below", lambda c, p, f: _shown(order(c, f["fault"]))),
    Route("DELETE", "/faults", "remove every fault; returns them as they were", lambda c, p, f: _heal(c)),
    Route("GET", "/faults/{id}", "one fault", lambda c, p, f: _shown(_fault(c, p["id"]))),
    Route("DELETE", "/faults/{id}", "remove one fault; returns it as it was", lambda c, p, f: _remove(c, p["id"])),
    Route("GET", "/nodes", "every node: running, paused or down", lambda c, p, f: _nodes(c)),
    Route("GET", "/nodes/{node}", "one node", lambda c, p, f: _node(c, p["node"])),
    Route("POST", "/nodes/{node}/kill", "SIGKILL: a crash", _act("kill")),
    Route("POST", "/nodes/{node}/stop", "SIGTERM: the node hands over and ends", _act("stop")),
    Route("POST", "/nodes/{node}/pause", "SIGSTOP: connections stay open, nothing answers", _act("pause")),
    Route("POST", "/nodes/{node}/resume", "let a paused node continue", _act("resume")),
    Route("POST", "/nodes/{node}/restart", "start a node that is down, or stop and start it", _act("restart")),
    Route("POST", "/nodes/{node}/wipe", "kill a node and take its disk away; then restart it", _act("wipe")),
    Route(
        "GET",
        "/requests",
        "what clients have asked, the oldest first; each node keeps its last 10,000 requests until it ends",
        lambda c, p, f: _requests(c, f),
        (Field("api", "text", "Kafka's name of the API; every API without it"), *WHERE),
    ),
    Route("DELETE", "/requests", "forget them", lambda c, p, f: c.forget_requests()),
    Route(
        "POST",
        "/topics",
        "create a topic; returns when every running node knows it",
        lambda c, p, f: c.create_topic(**f),
        (
            Field("name", "text", "its name", True),
            Field("partitions", "whole number", "1 without it"),
            Field("replicas", "whole number", "of each partition; 3, or as many as there are nodes, without it"),
            Field("config", "settings", 'such as {"retention.ms": 60000}'),
        ),
    ),
    Route(
        "GET",
        "/leader",
        "who leads a partition, and which replicas are in sync; waits until a running node leads",
        lambda c, p, f: _replicas(c, **f),
        (_TOPIC, _PARTITION, _TIMEOUT),
    ),
    Route(
        "POST",
        "/leader",
        "let another replica lead, without a failure",
        lambda c, p, f: _move(c, f),
        (_TOPIC, _PARTITION, Field("to", "node", "the next leader; any that is in sync without it")),
    ),
    Route(
        "GET",
        "/controller",
        "the node whose controller is active; waits until that is a running node",
        lambda c, p, f: {"controller": c.controller(**f)},
        (_TIMEOUT,),
    ),
    Route(
        "POST",
        "/in-sync",
        "wait until every replica of every partition is in sync",
        lambda c, p, f: c.wait_until_in_sync(**f),
        (_TIMEOUT,),
    ),
    Route(
        "POST",
        "/reset",
        "as new, between two tests: no faults, every node up, no topics, groups or requests",
        lambda c, p, f: c.reset(),
    ),
)
_CREATED = frozenset({("POST", "/faults"), ("POST", "/topics")})


class FaultApi:
    """The API of one cluster.

    Args:
        address: `host:port` of the HTTP server, for the lines to try.
    """

    def __init__(self, cluster: Cluster, address: str) -> None:
        self._cluster = cluster
        self._address = address

    def __repr__(self) -> str:
        return f"<FaultApi {self._address} of {self._cluster!r}>"

    def answer(self, method: str, path: str, query: Mapping[str, str], body: object) -> Reply:
        """Answer a request; any thread may call this.

        Args:
            body: the JSON value; None if the request has none.
        """
        try:
            route, parts = self._route(method, path)
        except _NoMethod as mistake:
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED, {"error": str(mistake)}, mistake.allow)
        except LookupError as mistake:
            return Reply(HTTPStatus.NOT_FOUND, {"error": str(mistake.args[0])})
        try:
            node = parts.get("node")
            if node is not None and node not in self._cluster.nodes:
                raise LookupError(f"there is no node {node}: the nodes are 1 to {len(self._cluster.nodes)}")
            fields = _fields(route, query, body)
            value = self._page() if route.path == "/" else route.answer(self._cluster, parts, fields)
        except LookupError as mistake:
            return Reply(HTTPStatus.NOT_FOUND, {"error": str(mistake.args[0])})
        except (BadOrder, TypeError, ValueError) as mistake:
            return Reply(HTTPStatus.BAD_REQUEST, {"error": str(mistake)})
        except (RuntimeError, KafkaError, CannotStart, OSError) as mistake:
            is_late = isinstance(mistake, TimeoutError)
            return Reply(HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.CONFLICT, {"error": str(mistake)})
        is_created = (route.method, route.path) in _CREATED
        return Reply(HTTPStatus.CREATED if is_created else HTTPStatus.OK, {} if value is None else value)

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, int]]:
        allow: list[str] = []
        for route in ROUTES:
            names = _PLACE.findall(route.path)
            found = re.fullmatch(_PLACE.sub(r"([0-9]{1,9})", route.path), path)
            if found is not None:
                if route.method == method:
                    return route, {name: int(part) for name, part in zip(names, found.groups(), strict=True)}
                allow.append(route.method)
        if allow:
            raise _NoMethod(f"{path} has no {printable(method)}: it has {' and '.join(allow)}", tuple(allow))
        known = sorted({route.path for route in ROUTES})
        hint = did_you_mean(path, known) or ": GET / lists what is there"
        raise LookupError(f"there is nothing at {printable(path)}{hint}")

    def _page(self) -> dict[str, Any]:
        curl = f"curl http://{self._address}"
        fault = '{"kind": "fail", "api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "orders", "times": 2}'
        return {
            "what": "Faults for tests of this cluster. JSON in and out; a mistake is an object with a sentence as its error.",
            "cluster": _cluster(self._cluster),
            "try": [
                f"{curl}/faults -d '{fault}'",
                f"{curl}/faults",
                f"{curl}/nodes/1/kill -X POST",
                f"curl 'http://{self._address}/requests?api=Produce&topic=orders'",
                f"{curl}/faults -X DELETE",
            ],
            "routes": [route.shown() for route in ROUTES],
            "kinds of faults": {
                name: {"what": kind.what, "body": {field.name: field.shown() for field in kind.fields}}
                for name, kind in KINDS.items()
            },
        }


class _NoMethod(Exception):
    def __init__(self, text: str, allow: tuple[str, ...]) -> None:
        super().__init__(text)
        self.allow = allow


def _fields(route: Route, query: Mapping[str, str], body: object) -> dict[str, Any]:
    whose = f"{route.method} {route.path}"
    if route.method == "POST" and route.path == "/faults":
        return {"fault": body}
    if route.method == "GET":
        return from_query(query, route.fields, whose)
    return checked({} if body is None else body, route.fields, whose)
