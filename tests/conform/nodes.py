"""Several nodes that are one cluster, as a broker under test; in each scenario one is killed and comes back.

The kill falls before a driver's command that is drawn from the scenario's name. The node is away for a time that is
drawn too: less than its session, so that it registers again before it is missed, or more, so that others lead.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.cluster import SETTINGS, Cluster

SAFE = {"default.replication.factor": "3", "min.insync.replicas": "2"}
FIRST_COMMANDS = 8
"""Each scenario has at least about so many commands; a kill after its end would show nothing."""

AWAY_S = 2 * int(SETTINGS["broker.session.timeout.ms"]) / 1000


class Nodes:
    """A cluster with the shape of a broker under test.

    Args:
        kind: `barnabas` or `apache-kafka`.
        folder: everything is in it.
        settings: of every node; their ids are the cluster's own.
    """

    def __init__(self, kind: str, folder: Path, nodes: int, settings: dict[str, str]) -> None:
        self.name = kind
        wanted = {key: value for key, value in settings.items() if key != "node.id"}
        self.cluster = Cluster(kind, folder, nodes, settings=SAFE | wanted)
        self.data_dir = self.cluster.brokers[0].data_dir
        self.bootstrap_servers = self.cluster.bootstrap_servers

    def __repr__(self) -> str:
        return f"<Nodes {self.cluster}>"

    def start(self) -> None:
        """Start whichever nodes are down."""
        self.cluster.start()

    def stop(self) -> None:
        """Stop a node in order: of a cluster that is what its operator does, one after the other."""
        self.cluster.brokers[0].stop()

    def kill(self) -> None:
        """End every process."""
        self.cluster.close()

    @contextmanager
    def one_is_killed(self, name: str) -> Iterator[Callable[[], None]]:
        """Yield a function to call before each command: one of the calls kills a node.

        At the end every replica is in sync.
        """
        self.cluster.repair()
        chance = random.Random(name)
        node = chance.choice(self.cluster.brokers)
        at = chance.randrange(1, FIRST_COMMANDS)
        comes_back = threading.Timer(chance.uniform(0, AWAY_S), self.cluster.start_again, [node])
        counted = 0

        def before_command() -> None:
            nonlocal counted
            counted += 1
            if counted == at:
                node.kill()
                comes_back.start()

        try:
            yield before_command
        finally:
            if comes_back.ident is not None:
                comes_back.join()
            self.cluster.repair()
