"""Three nodes, and a thread that cuts the leaders of the sink's topics off, one after another, for some seconds each.

A leader that is cut off from the other nodes still answers clients: it is deposed and does not know it for a while.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import barnabas

INTERNAL = ("__barnabas_sink", "__transaction_state")
"""Where the sink's decisions and the transactions are; the third victim is a leader of the target."""

COORDINATORS = 5
"""Partitions of `__transaction_state`: each has transactions of the sink, sooner or later."""


class CutLeaders:
    """A cluster, as a context manager; its nodes are cut off until `heal`.

    Attributes:
        cuts: by topic, how often a leader was cut off and was not the leader of its partition in the end.
        healed: by topic, how often the cut ended before another node led.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        settings = {"transaction.state.log.num.partitions": COORDINATORS}
        self._cluster = barnabas.Cluster(3, data_dir=folder, config=settings)
        self._rng = random.Random(f"{seed}-cuts")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._cut_leaders, name="cut leaders", daemon=True)
        self._targets: list[str] = []
        self._failure: BaseException | None = None
        self.cuts: Counter[str] = Counter()
        self.healed: Counter[str] = Counter()

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    def __enter__(self) -> Self:
        self._cluster.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._cluster.stop()

    def cut(self, target: str) -> None:
        """Begin with the cuts; the leaders of `target` are among the victims."""
        self._targets = [*INTERNAL, target]
        self._thread.start()

    def heal(self) -> str:
        """End the cuts, wait until the cluster is whole, and return what was cut off how often.

        Raises:
            AssertionError: no leader was cut off, or the cuts ended with an error.
        """
        self._over.set()
        self._thread.join()
        assert self._failure is None, f"the cuts ended: {self._failure!r}"
        self._cluster.wait_until_in_sync(timeout=120)
        assert self.cuts, "no leader was cut off"
        cut = ", ".join(f"{count} of {topic}" for topic, count in sorted(self.cuts.items()))
        return f"{cut}; {self.healed.total()} cuts ended before another node led"

    def _cut_leaders(self) -> None:
        try:
            while not self._over.wait(self._rng.uniform(1, 4)):
                self._cut_one(self._rng.choice(self._targets))
        except BaseException as error:
            self._failure = error

    def _cut_one(self, topic: str) -> None:
        partition = self._rng.randrange(COORDINATORS if topic == "__transaction_state" else 1)
        # The topic may not be there yet, or be without a leader after the last cut.
        with suppress(TimeoutError):
            leader = self._cluster.leader(topic, partition, timeout=1)
            others = [node for node in self._cluster.nodes if node != leader]
            self._cluster.partition([leader], others)
            try:
                self._over.wait(self._rng.uniform(8, 16))
                with suppress(TimeoutError):
                    # Any node's view of the leader; the one that is cut off may still name itself.
                    now = self._cluster.leader(topic, partition, timeout=1)
                    (self.cuts if now != leader else self.healed)[topic] += 1
            finally:
                self._cluster.heal()
