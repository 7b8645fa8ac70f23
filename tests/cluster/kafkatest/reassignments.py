"""kafka-reassign-partitions as an operator uses it: it executes moves, and verifies them until they are done."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

Moves = dict[tuple[str, int], list[int]]
"""The wanted replicas of partitions, by topic and index."""


def shuffled(cluster: Cluster, rng: random.Random, topic: str) -> Moves:
    """Give each partition of a topic the replicas of another one, as kafkatest does; some may keep their own."""
    partitions = cluster.partitions(topic)
    order = rng.sample(range(len(partitions)), len(partitions))
    return {(topic, each.partition): list(partitions[order[each.partition]].replicas) for each in partitions}


def anywhere(cluster: Cluster, rng: random.Random, topic: str) -> Moves:
    """Give each partition of a topic as many replicas as it has, on any nodes."""
    ids = sorted(node.node_id for node in cluster.brokers)
    return {
        (topic, each.partition): rng.sample(ids, len(each.replicas))
        for each in cluster.partitions(topic)
    }  # fmt: skip


class Reassignment:
    """One file of moves.

    Args:
        throttle: bytes a second; None for none.
    """

    def __init__(
        self, cluster: Cluster, tools: ToolProcess, folder: Path, moves: Moves, throttle: int | None = None
    ) -> None:
        self._cluster, self._tools, self.moves = cluster, tools, moves
        self._throttle = [] if throttle is None else ["--throttle", str(throttle)]
        self._file = folder / "reassignment.json"
        wanted = [{"topic": topic, "partition": index, "replicas": ids} for (topic, index), ids in moves.items()]
        self._file.write_text(json.dumps({"version": 1, "partitions": wanted}))

    def _call(self, *args: str) -> str:
        return self._tools.run(
            "reassign-partitions", "--bootstrap-server", self._cluster.bootstrap_servers,
            "--reassignment-json-file", str(self._file), *args,
        )  # fmt: skip

    def execute(self) -> None:
        """Begin the moves."""
        printed = self._call("--execute", *self._throttle)
        assert "Successfully started partition reassignment" in printed, printed

    def is_done(self) -> bool:
        """Return whether the tool says that each move is complete; it has then removed the throttle."""
        printed = self._call("--verify")
        return printed.startswith("exit 0") and printed.count(" is completed") == len(self.moves)

    def await_done(self) -> None:
        wait_for(f"{len(self.moves)} moves are complete", self.is_done)
        self.await_folders()

    def await_folders(self) -> None:
        """Wait until the moved partitions have folders on the nodes of their replicas, and on no others."""
        for (topic, index), ids in self.moves.items():
            name = f"{topic}-{index}"
            wait_for(
                f"{name} is on nodes {sorted(ids)} alone",
                lambda name=name, ids=ids: {  # type: ignore[misc]
                    node.node_id for node in self._cluster.brokers if (node.data_dir / name).exists()
                } == set(ids),
            )  # fmt: skip
