"""A node of a simulated cluster that runs an older barnabas, in the same process as the present one, as a package of another name.

Each time it starts again it may have the other program: it is upgraded, or goes back.

The network, the disk and the clock are the present simulation's: the seam to the server is the same since 0.1.0.
"""

from __future__ import annotations

import importlib
import random
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.config.cannot_start import CannotStart
from barnabas.log.partition_log import PartitionLog
from tests import older_release
from tests.simulation.aimed_faults import BLACK_OUT, IN_TRANSACTIONS, LOST_DIRECTORY, SPARING, UNCLEAN
from tests.simulation.cluster_faults import OF_DIRECTORIES
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.history import Partition
from tests.simulation.judged_node import JudgedNode

NAME = "older_barnabas_package"
OLDER_ID = 2
IMPORT = re.compile(r"^(\s*)(from|import) barnabas\b", re.MULTILINE)
NAMED = re.compile(r'"barnabas\.(api\.\{|protocol\.messages"|version")')
"""Modules that the older barnabas imports by their names."""


NOT_PROMISED = frozenset(
    {UNCLEAN, BLACK_OUT, IN_TRANSACTIONS, SPARING, LOST_DIRECTORY, "kill_the_others", "cut_all_power"}
)
"""The aimed faults after which 0.1.0 loses what it does not lose today, or stands still."""


class OlderPackage(NamedTuple):
    """What a node is made of, and what it may raise."""

    server: type[Any]
    config: type[Any]
    cannot_start: type[Exception]
    kafka_error: type[Exception]


def load(folder: Path) -> OlderPackage:
    """Write the older barnabas below a folder, import it, and return it.

    Raises:
        NoHistory, RuntimeError: as `older_release.unpack`.
    """
    if NAME not in sys.modules:
        package = older_release.unpack(folder) / "barnabas"
        for path in package.rglob("*.py"):
            text = IMPORT.sub(rf"\1\2 {NAME}", path.read_text())
            path.write_text(NAMED.sub(rf'"{NAME}.\1', text))
        package.rename(package.with_name(NAME))
        sys.path.insert(0, str(package.parent))
        try:
            importlib.import_module(NAME)
        finally:
            sys.path.pop(0)
    return OlderPackage(
        _found("node.node", "Node"),
        _found("config.config", "BrokerConfig"),
        _found("config.cannot_start", "CannotStart"),
        _found("protocol.errors", "KafkaError"),
    )


def _found(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{NAME}.{module}"), name)


def plan_with(plan: ClusterPlan) -> ClusterPlan:
    """Return a plan without what 0.1.0 does not promise or does not have, and without the topic whose cleaner is looked into."""
    aimed = None if plan.aimed in NOT_PROMISED else plan.aimed
    kinds = tuple(each for each in plan.fault_kinds if each not in OF_DIRECTORIES)
    return replace(
        plan, aimed=aimed, fault_kinds=kinds if aimed or kinds else ("kill",), compacts=False, has_directories=False
    )


class OlderNode(JudgedNode):
    """A machine for one node: its first process is of the older barnabas, each later one of either, as an upgrade and its way back."""

    def __init__(self, package: OlderPackage, *where: Any, **how: Any) -> None:
        self._package = package
        self._was_older = self._has_run = False
        super().__init__(*where, **how)

    def _make_server(self) -> Any:
        is_older = not self._has_run or self._rng.random() < 0.5
        if self._has_run and is_older != self._was_older:
            self.note(f"runs barnabas {older_release.RELEASE if is_older else 'of today'} from now on")
        self._has_run, self._was_older = True, is_older
        if not is_older:
            return super()._make_server()
        return self._package.server(
            self._package.config.from_properties(self.properties),
            loop=self.loop,
            disk=self.disk,
            now_ms=self.now_ms,
            random=random.Random(self._rng.random()),
            monotonic_ns=self.monotonic_ns,
        )

    async def start(self) -> None:
        """Start, and raise the present barnabas's `CannotStart` for the older one's."""
        try:
            await super().start()
        except self._package.cannot_start as error:
            raise CannotStart(str(error)) from error

    def log(self, partition: Partition) -> PartitionLog | None:
        try:
            return super().log(partition)
        except self._package.kafka_error:
            return None
