"""Is the cluster healthy, and what stands still while one of its nodes changes?

A cluster in which something is wrong is not changed: each node that changes is away for some seconds, and a partition that has lost a
replica already would lose another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.adopt.cluster_state import ClusterState, Settings
from barnabas.adopt.finding import Finding, blocks, differs, works
from barnabas.cli.wording import counted, listed
from barnabas.client.admin import ConfigEntry, PartitionDescription, TopicPartition
from barnabas.client.topics import MIN_ISR

__all__ = ["findings_of_health"]

_CLUSTER = "cluster"
_VOTERS_MIN = 3


class _Few(NamedTuple):
    """Topics with too few replicas to lose one for a while."""

    alone: list[str]
    as_min_isr: list[str]


def findings_of_health(state: ClusterState) -> Iterator[Finding]:
    """Yield what is wrong with the cluster, and what will not serve while a node changes."""
    if state.problems is None:
        remedy = "use a login with the right to DESCRIBE and DESCRIBE_CONFIGS of the cluster and all topics"
        yield blocks(_CLUSTER, "whether it is healthy could not be read", remedy)
    for problem, where, remedy in state.problems or ():
        yield blocks(listed(where), f"the cluster is not healthy: {problem}", remedy)
    if state.moving:
        remedy = "wait until `barnabas cluster status` counts none that move"
        yield blocks(_CLUSTER, f"the replicas of {counted(state.moving, 'partition')} move", remedy)
    if state.problems is not None and not state.problems and not state.moving:
        what = f"healthy: {counted(len(state.brokers), 'broker')}, {counted(len(state.partitions), 'partition')}, all in sync"
        yield works(_CLUSTER, what)
    for broker in state.brokers:
        if broker in state.barnabas:
            yield works(f"broker {broker}", "it is barnabas already")
    yield from _while_a_node_is_away(state)


def _while_a_node_is_away(state: ClusterState) -> Iterator[Finding]:
    if 0 < len(state.voters) < _VOTERS_MIN:
        what = f"the quorum has {counted(len(state.voters), 'voter')}: it has no leader while one of them changes"
        yield differs(
            _CLUSTER, what, "expect that nothing can be created or altered for some seconds, or add voters first"
        )
    few = _few(state.partitions, state.topic_settings)
    if few.alone:
        what = f"{counted(len(few.alone), 'topic')} with a single replica: offline while its broker changes"
        yield differs(f"topic {listed(few.alone)}", what, "give each partition another replica, or choose a quiet hour")
    if few.as_min_isr:
        what = f"{counted(len(few.as_min_isr), 'topic')} with no replica more than {MIN_ISR}: rejects acks=all while a broker changes"
        yield differs(f"topic {listed(few.as_min_isr)}", what, f"add a replica, or lower {MIN_ISR} meanwhile")


def _few(partitions: Mapping[TopicPartition, PartitionDescription], settings: Settings) -> _Few:
    least: dict[str, int] = {}
    for at, partition in partitions.items():
        least[at.topic] = min(len(partition.replicas), least.get(at.topic, len(partition.replicas)))
    found = _Few([], [])
    for topic, replicas in sorted(least.items()):
        if replicas == 1:
            found.alone.append(topic)
        elif replicas <= _min_isr(settings.get(topic, ())):
            found.as_min_isr.append(topic)
    return found


def _min_isr(settings: Sequence[ConfigEntry]) -> int:
    return next((int(each.value) for each in settings if each.name == MIN_ISR and each.value is not None), 1)
