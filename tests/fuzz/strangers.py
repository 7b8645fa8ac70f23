"""Requests of a stranger to a controller with an authorizer: what nodes ask each other, and what brokers forward, from one who is neither.

Oracles
- `dispatch` returns, or refuses the request and says why; no error code is UNKNOWN_SERVER_ERROR, unless an API has no handler; and the node
  logs no error.
- Nothing changes: not the metadata, not the log and its high watermark, not epoch, leader and voters, and no heartbeat counts.
- What only nodes may ask gets CLUSTER_AUTHORIZATION_FAILED, if it can be read at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import time
from collections.abc import Iterator
from random import Random
from types import TracebackType
from typing import Any, Self

from barnabas.api.authorization.guard import ControllerGuard
from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.api.envelope import FORWARDABLE
from barnabas.api.serving.context import ConnectionInfo
from barnabas.api.serving.dispatch import Dispatcher, RefusedRequest
from barnabas.protocol.api_keys import ApiKey, api, request_header_version, response_header_version
from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError
from barnabas.protocol.message import Struct
from barnabas.protocol.principal import write_principal
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.principal import Principal
from tests.api.controlling import Controlling
from tests.fuzz.messages import Names, Values, mutated
from tests.metadata.controller_harness import CLUSTER_ID

OF_NODES = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
)
"""What needs CLUSTER_ACTION."""

ADMIN, EVE = Principal("User", "admin"), Principal("User", "eve")


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Strangers:
    """A controller, and a stream of requests to it from somebody without a right.

    Attributes:
        sent, answered, refused: numbers of requests.
        denied: answers with CLUSTER_AUTHORIZATION_FAILED for the whole request.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sent = self.answered = self.refused = self.denied = 0
        self.slowest = ("", 0.0)
        self.node = Controlling()
        authorizer = StandardAuthorizer({str(ADMIN)})
        authorizer.replace({})
        self.node.services.authorizer = authorizer
        controller = self.node.quorum.controller
        controller.guard = ControllerGuard(authorizer, self.node.services.image).answer
        self._dispatcher = Dispatcher(self.node.services)
        self.node.connection.principal = ADMIN
        self.node.add_broker(2)
        # A connection keeps what was decided for its principal.
        self.node.connection = ConnectionInfo("eve", "CONTROLLER", "10.0.0.66", 6666, "controller.example", 9093)
        self.node.connection.principal = EVE
        self._errors = _Errors()
        logging.getLogger("barnabas").addHandler(self._errors)
        self._inner = Values(self.random, _names(self.random, []))
        self._values = Values(self.random, _names(self.random, [self._forwarded() for _ in range(200)]))
        self._kept: dict[int, list[bytes]] = {}
        self.node.heard_from.clear()
        self._before = self._state()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("barnabas").removeHandler(self._errors)
        self.node.close()

    def _state(self) -> tuple[object, ...]:
        node = self.node
        return node.services.image(), repr(node.quorum.driver.node), repr(node.quorum), list(node.heard_from)

    def _forwarded(self) -> bytes:
        """Return a request as an envelope has it."""
        key = self.random.choice(sorted(FORWARDABLE & CONTROLLER_APIS.keys()))
        frame = _frame(self.random, self._inner, key)
        return mutated(self.random, frame, []) if self.random.random() < 0.2 else frame

    def one(self) -> None:
        """Send one request, now and then whole and right, mostly not."""
        random = self.random
        key = int(random.choice(OF_NODES) if random.random() < 0.8 else random.choice(list(CONTROLLER_APIS)))
        kept = self._kept.setdefault(key, [])
        frame = _frame(random, self._values, key)
        is_whole = random.random() < 0.6
        if not is_whole:
            frame = mutated(random, frame, kept)
        elif len(kept) < 50:
            kept.append(frame)
        self._send(frame, key if is_whole and key in OF_NODES else None)

    def _send(self, frame: bytes, of_nodes: int | None) -> None:
        self.sent += 1
        loop = self.node.loop

        async def dispatched() -> Any:
            context, result = self._dispatcher.dispatch(self.node.connection, memoryview(bytearray(frame)))
            if isinstance(result, asyncio.Future):
                result = await asyncio.wait_for(result, 100)
            return context, result

        began = time.thread_time()
        try:
            context, result = loop.run_until_complete(dispatched())
        except RefusedRequest:
            self.refused += 1
            return
        finally:
            took = time.thread_time() - began
            if took > self.slowest[1]:
                self.slowest = (f"API {int.from_bytes(frame[:2])}", took)
        if result is None:
            return
        self.answered += 1
        body = b"".join(bytes(part) for part in result)[8 + response_header_version(context.api_key, context.version) :]
        answer = api(context.api_key).response_class.decode(body, context.version)
        found = set(_codes(answer)) - {0}
        # As Kafka's, a controller lists DescribeDelegationToken, and has no handler for it.
        if context.api_key != ApiKey.DESCRIBE_DELEGATION_TOKEN:
            assert ErrorCode.UNKNOWN_SERVER_ERROR not in found, f"{context!r}: {str(answer)[:500]}"
        self.denied += found == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        # A Fetch without partitions had no place for an error before version 7.
        is_mute = context.api_key == ApiKey.FETCH and context.version < 7 and not found
        if of_nodes is not None and not is_mute:
            assert found == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, f"{context!r}: {str(answer)[:500]}"

    def check(self) -> None:
        """Raise AssertionError if an oracle has failed."""
        self.node.loop.run_until_complete(asyncio.sleep(30))
        assert self._state() == self._before
        assert not self._errors.lines, self._errors.lines[:3]


def _codes(message: object) -> Iterator[int]:
    """Yield the error codes in a message, wherever they are."""
    if isinstance(message, Struct):
        if hasattr(message, "error_code"):
            yield message.error_code
        for name in message.FIELDS:
            yield from _codes(getattr(message, name))
    elif isinstance(message, list):
        for each in message:
            yield from _codes(each)


def _frame(random: Random, values: Values, key: int) -> bytes:
    served = CONTROLLER_APIS[key]
    while True:
        version = random.randint(served.min_served, served.max_version)
        head = struct.pack(">hhih", key, version, 7, 3) + b"eve" + bytes(request_header_version(key, version) >= 2)
        with contextlib.suppress(EncodeError, KafkaError):
            return head + bytes(values.message(api(key).request_class, version).encode(version))


def _names(random: Random, forwarded: list[bytes]) -> Names:
    principals = [write_principal(each) for each in (ADMIN, EVE, Principal("User", "ANONYMOUS"))]
    return {
        "cluster_id": [CLUSTER_ID, CLUSTER_ID, None, "another"],
        "topic": ["__cluster_metadata"],
        "topic_name": ["__cluster_metadata"],
        "name": ["__cluster_metadata", "orders", "CONTROLLER", "PLAINTEXT", "metadata.version"],
        "partition": [0],
        "partition_index": [0],
        "replica_id": [-1, 1, 2, 3],
        "voter_id": [1, 2, 3],
        "candidate_id": [1, 2, 3],
        "leader_id": [1, 2, 3, -1],
        "leader_epoch": [0, 1, 2, 1000, 1 << 30],
        "replica_epoch": [0, 1, 2, 1000, 1 << 30],
        "candidate_epoch": [0, 1, 2, 1000, 1 << 30],
        "last_offset": [0, 1 << 40],
        "last_offset_epoch": [0, 1000],
        "current_leader_epoch": [-1, 0, 1, 2],
        "fetch_offset": [0, 1, 5, 1 << 40],
        "last_fetched_epoch": [0, 1, 1000],
        "max_wait_ms": [0, 10],
        "broker_id": [1, 2, 3, 77],
        "broker_epoch": [-1, 0, 1, 5],
        "host": ["127.0.0.1", "h", ""],
        "port": [1, 9092],
        "want_fence": [False],
        "want_shut_down": [False, True],
        "topics": ["orders"],
        "request_data": [*forwarded],
        "request_principal": [
            *principals,
            *principals,
            *(mutated(random, each, principals) for each in principals),
            b"",
        ],
        "client_host_address": [b"\x7f\0\0\1", bytes(16), b"", b"\1"],
    }
