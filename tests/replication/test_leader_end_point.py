"""Which versions and time limits the requests to a leader have."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.message import Message
from barnabas.protocol.messages import FetchRequest, ListOffsetsRequest
from barnabas.replication.leader_end_point import RemoteLeaderEndPoint
from barnabas.simulation.world_loop import WorldLoop
from barnabas.steps import step


class Connection:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def request(self, message: Message, **options: Any) -> Any:
        self.asked.append((type(message), options))


def test_a_fetch_may_wait_longer() -> None:
    loop, connection = WorldLoop(), Connection()
    leader = RemoteLeaderEndPoint(connection, timeout_ms=100)
    step(leader.fetch(FetchRequest(max_wait_ms=500)), loop)
    step(leader.list_offsets(ListOffsetsRequest()), loop)
    assert connection.asked == [
        (FetchRequest, {"highest": 18, "timeout_ms": 600}),
        (ListOffsetsRequest, {"timeout_ms": 100}),
    ]
    loop.close()
