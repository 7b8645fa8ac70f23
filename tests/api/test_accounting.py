"""What a request costs, as metrics and quotas see it: its bytes, and the time in which it held the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import MetadataRequest, MetadataResponse
from tests.api.served_node import Serving


class Costs:
    """Notes bytes, busy time and total time of each request that is answered."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def answered(self, context: AnyContext, response: Any, output: Any, total_ns: int) -> None:
        assert context.accounting is not None
        self.seen.append((context.accounting.request_bytes, context.accounting.busy_ns, total_ns))


class Metered(Serving):
    """A node whose clock the test moves. Metadata works for 5 ms, waits for 100 ms if the test says so, and works for 2 ms more."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ns = 10**12
        self.waits = False
        self.costs = Costs()
        self.server.services.monotonic_ns = lambda: self.ns
        self.dispatcher = Dispatcher(self.server.services, self.costs)
        self.dispatcher.route(ApiKey.METADATA).handle = self._handle

    async def _handle(self, context: Any, request: Any) -> Any:
        self.ns += 5_000_000
        if self.waits:
            await asyncio.sleep(0)
            self.ns += 100_000_000
        self.ns += 2_000_000
        return MetadataResponse()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Metered]:
    made = Metered(tmp_path)
    yield made
    made.close()


def test_a_request_that_does_not_wait_is_busy_until_its_response(node: Metered) -> None:
    node.ask(MetadataRequest(topics=[]), 12)
    ((_, busy_ns, total_ns),) = node.costs.seen
    assert (busy_ns, total_ns) == (7_000_000, 7_000_000)


def test_the_time_of_a_wait_is_not_the_clients(node: Metered) -> None:
    node.waits = True
    node.ask(MetadataRequest(topics=[]), 12)
    ((_, busy_ns, total_ns),) = node.costs.seen
    assert (busy_ns, total_ns) == (5_000_000, 107_000_000)


def test_the_bytes_of_a_request_are_those_of_its_header_and_body(node: Metered) -> None:
    name = MetadataRequest.MetadataRequestTopic(name="a" * 100)
    for topics in ([], [name], [name, name]):
        node.ask(MetadataRequest(topics=topics), 1)
    # A client id of four letters, the number of topics, and two bytes of length before each name.
    assert [size for size, *_ in node.costs.seen] == [8 + 2 + 4 + 4 + more for more in (0, 102, 204)]
