"""Run a scenario from a seed: the world around it, and what its failure says.

    seed ──► world, cluster, scenario ──► value, digest, timeline     or the scenario's exception, with a note that names the seed

All chance of the run follows from the seed: delays and pieces on the network, the choices of brokers, `cluster.random`, and the module
`random`, which clients use. So two runs of a seed deliver the same bytes at the same virtual moments, and have the same digest.
"""

from __future__ import annotations

import asyncio
import inspect
import linecache
import logging
import os
import random
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from barnabas.embedded.cluster_arguments import checked_brokers, checked_settings
from barnabas.process.local_cluster import copies_settings
from barnabas.simulation.aiokafka_state import aiokafka_as_new
from barnabas.simulation.clocks import virtual_clocks
from barnabas.simulation.cluster import Cluster, play, waiting
from barnabas.simulation.timeline import LogLines, Timeline
from barnabas.simulation.world import World, without_collections
from barnabas.simulation.world_loop import Stuck

__all__ = ["DEFAULTS", "Hung", "Run", "run"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

R = TypeVar("R")

HOSTS = "host-{}.invalid"
"""Names that resolve nowhere (RFC 2606), so a client that leaves the simulation reaches no real broker."""
SHOWN = 25
"""How many lines of the timeline a failure shows."""
MACHINERY = {os.path.dirname(asyncio.__file__), os.path.dirname(__file__)}
"""The folders of the code that waits for everybody."""
DEFAULTS = {
    # Fewer partitions to create, and to look after, in each run.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    # A record that says nothing, twice a second, is half the work of a cluster that does nothing.
    "metadata.max.idle.interval.ms": "5000",
    # The same for followers that ask for records when there are none.
    "replica.fetch.wait.max.ms": "5000",
}
"""Defaults of a simulated cluster's nodes that are not Kafka's."""


class Hung(Exception):
    """The scenario has not ended, and never will or not in the seconds that it may take; the text says what it waits for."""


@dataclass(frozen=True)
class Run(Generic[R]):
    """The outcome of a scenario.

    Attributes:
        seed: what `run` got.
        value: what the scenario returned.
        seconds: how much virtual time passed, the start of the cluster included.
        digest: a hash of every delivery and every fault with its moment: two runs of a seed share it.
        timeline: the faults, and what brokers logged, one a line, for people.
    """

    seed: int
    value: R
    seconds: float
    digest: str
    timeline: str


def run(
    scenario: Callable[[Cluster], Coroutine[Any, Any, R]],
    *,
    seed: int,
    nodes: int = 3,
    config: Mapping[str, object] | None = None,
    seconds: float = 3600.0,
) -> Run[R]:
    """Run a scenario against a cluster in virtual time.

    Args:
        scenario: an async function; its argument is the cluster, which has started.
        seed: all chance follows from it.
        nodes: how many nodes the cluster has.
        config: settings of every node, by Kafka's names, over Kafka's defaults.
        seconds: how much virtual time it may take.

    Raises:
        Hung: the scenario does not end.
        Exception: what the scenario, or a process of it, has raised; a note names the seed and shows the last faults.
        ConfigError: a setting is unknown or not valid, or each node has its own.
        RuntimeError: called from a coroutine, though the simulation has a loop of its own; or something failed in a callback or in a
            broker, where the scenario cannot see it.
    """
    if not inspect.iscoroutinefunction(scenario):
        raise TypeError(f"{scenario!r} is not an async function: pass one that takes the cluster")
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("simulation.run has a loop of its own: call it from a function that is not async")
    size = checked_brokers(nodes)
    settings = {**copies_settings(size), **DEFAULTS, **checked_settings(config)}
    with ExitStack() as stack:
        stack.enter_context(without_collections())
        stack.enter_context(_seeded(seed))
        world = World(seed, hosts=HOSTS)
        stack.enter_context(virtual_clocks(world))
        stack.enter_context(aiokafka_as_new())
        stack.enter_context(_log_lines())
        cluster = Cluster(world, size, settings)
        try:
            value = world.play(play(cluster, scenario), seconds=seconds)
        except Stuck as stuck:
            error: BaseException = Hung(f"seed {seed}: {stuck}; {_waits(cluster)}")
        except BaseException as raised:
            error = raised
        else:
            if not world.errors:
                page = world.timeline.page()
                return Run(seed, value, world.loop.time(), world.timeline.digest(), page)
            error = RuntimeError(f"seed {seed}: {'; '.join(world.errors)}")
        finally:
            for node in world.nodes:
                node.close_coroutines()
        error.add_note(_note(seed, world.loop.time(), world.timeline))
        raise error


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the module `random`, and put its state back afterwards."""
    before = random.getstate()
    random.seed(f"{seed} clients")
    try:
        yield
    finally:
        random.setstate(before)


@contextmanager
def _log_lines() -> Iterator[None]:
    """Write the warnings of nodes into the timeline, and let no root handler write them too."""
    logger, handler = logging.getLogger("barnabas"), LogLines(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _note(seed: int, at: float, timeline: Timeline) -> str:
    # The order of a set of texts, which clients have, is chosen for each process.
    condition = ", with PYTHONHASHSEED=0 in both processes" if sys.flags.hash_randomization else ""
    said = f"seed {seed}, after {at:.3f} s of virtual time; the same seed replays it{condition}"
    return f"{said}\n{timeline.page(last=SHOWN)}"


def _waits(cluster: Cluster) -> str:
    """Return where each process waits, in the code of its coroutine."""
    places = [f"{name} waits in {_place(each)}" for name, running in waiting(cluster).items() for each in running]
    return ", ".join(places) or "no process runs"


def _place(coroutine: Any) -> str:
    """Return the innermost line of a chain of awaits that is not in asyncio or in this package."""
    found = "a coroutine that has not begun"
    while inspect.iscoroutine(coroutine) and (frame := coroutine.cr_frame) is not None:
        name = frame.f_code.co_filename
        if os.path.dirname(name) not in MACHINERY:
            line = linecache.getline(name, frame.f_lineno).strip()
            found = f"{os.path.basename(name)}:{frame.f_lineno}, {line!r}"
        coroutine = coroutine.cr_await
    return found
