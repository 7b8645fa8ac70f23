"""Measures how long the loop is held by one request of each API, for each array that the request has.

    python -m tests.api.longest_turns [API …]

prints, for each API, the milliseconds of its longest turn of the loop with 1 MB of the shortest elements, longest first: of the
processor, so that a busy machine prints nearly the same.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.api import APIS
from barnabas.node.full_collections import FullCollections
from barnabas.protocol.api_keys import ApiKey
from tests.api.filled_requests import Values
from tests.api.long_requests import LongArray, arrays, long_request
from tests.api.test_every_request_is_answered import SPECIAL, Late
from tests.api.turn_meter import TurnMeter

MEGABYTE = 1 << 20
PARTITIONS = 1_000
"""Of the topic that the requests name."""


class Turns(NamedTuple):
    """How a request was handled: its longest turn in the meter's unit, and how many turns it took."""

    longest: int
    count: int  # type: ignore[assignment]  # nobody counts in the tuple


class MeasuredNode:
    """A node whose turns are measured, with a topic of many partitions."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.loop = TurnMeter()
        late = Late(folder, self.loop)
        self._node = late.node
        self._node.create_topic("w", partitions)
        topic = self._node.server.services.image().topics.by_name["w"]
        names = dict.fromkeys(("name", "topic", "topic_name"), "w")
        self._values: Values = {**late.values, **names, "topic_id": bytes(topic.topic_id)}

    def close(self) -> None:
        self._node.close()

    def body(self, of: LongArray, shape: str, size_bytes: int) -> bytes:
        """Return the body of a long request."""
        values = {**self._values, **SPECIAL.get(of.key, {})}
        return bytes(long_request(of, shape, size_bytes, values).encode(of.version))

    def measure(self, key: int, version: int, body: bytes, meter: Callable[[], int]) -> Turns:
        """Let the node handle a request."""
        self.loop.reset(meter)
        self._node.send(key, version, body)
        return Turns(self.loop.longest, self.loop.turns)


def main(names: list[str]) -> None:
    """Print the table."""
    longest: dict[str, tuple[float, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        node = MeasuredNode(Path(folder), PARTITIONS)
        FullCollections(node.loop).begin()
        for key in (key for key in APIS if not names or ApiKey(key).name in names):
            for of in arrays(key):
                for shape in of.shapes:
                    turns = node.measure(key, of.version, node.body(of, shape, MEGABYTE), time.thread_time_ns)
                    row = (turns.longest / 1e6, f"{of.name} ({shape}, {turns.count} turns)")
                    longest[ApiKey(key).name] = max(longest.get(ApiKey(key).name, (0.0, "")), row)
                    print(f"{row[0]:9.1f}  {ApiKey(key).name:42} {row[1]}", file=sys.stderr, flush=True)
    for name, (longest_ms, array) in sorted(longest.items(), key=lambda row: -row[1][0]):
        print(f"{longest_ms:9.1f}  {name:42} {array}")


if __name__ == "__main__":
    main(sys.argv[1:])
