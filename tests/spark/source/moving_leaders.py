"""Moves the leaders of a topic again and again, in a thread, by kills and by elections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.admin import Admin
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.outcome import results
from barnabas.protocol.errors import KafkaError
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.waiting import wait_for


class Mover:
    """Round after round: a leader is killed, another one leads, the node returns, and leads again by an election.

    Args:
        cluster: of three nodes, with a copy of every partition of the topic.
        topic: partition `n` is led by the n-th node whenever all are in sync.
        load: writes to it; a round goes on when records were acknowledged under the new leader.

    Attributes:
        moves: how often a partition's leader changed.
        failure: what ended the thread.
    """

    def __init__(self, cluster: Cluster, topic: str, load: Load) -> None:
        self.moves = 0
        self.failure: BaseException | None = None
        self._cluster, self._topic, self._load = cluster, topic, load

    def __repr__(self) -> str:
        return f"<Mover topic={self._topic} moves={self.moves}>"

    @contextmanager
    def running(self, rounds: int) -> Iterator[threading.Event]:
        """Move leaders while the block runs; yield an event that is set when all rounds are over."""
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(rounds, over), daemon=True)
        thread.start()
        yield over
        thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, rounds: int, over: threading.Event) -> None:
        try:
            for number in range(rounds):
                self._kill(number)
                self.elect()
        except BaseException as error:
            self.failure = error
        finally:
            over.set()

    def _kill(self, number: int) -> None:
        cluster, load = self._cluster, self._load
        partition = number % load.partitions
        node = cluster.leader_of(self._topic, partition)
        epochs = self._epochs()
        load.await_more(20)
        node.kill()
        load.await_more(20)
        cluster.start_again(node)
        cluster.await_in_sync([self._topic])
        self._count(epochs)

    def elect(self) -> None:
        """Let each partition be led by its first replica, which must be in sync."""
        epochs = self._epochs()
        partitions = [TopicPartition(self._topic, index) for index in range(self._load.partitions)]

        def are_led_by_the_first() -> bool:
            with Admin(self._cluster.bootstrap_servers) as admin:
                results(admin.elect_preferred_leaders(partitions))
            return all(each.leader == each.replicas[0] for each in self._cluster.partitions(self._topic))

        wait_for("each partition is led by its first replica", are_led_by_the_first)
        self._load.await_more(20)
        self._count(epochs)

    def _epochs(self) -> list[int]:
        return [each.leader_epoch for each in self._cluster.partitions(self._topic)]

    def _count(self, before: list[int]) -> None:
        def now() -> list[int]:
            found = self._epochs()
            if len(found) != len(before):
                raise KafkaError(3, "the topic is not there yet")
            return found

        self.moves += sum(after > then for after, then in zip(wait_for("epochs", now), before, strict=True))
