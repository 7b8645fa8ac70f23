"""The view of one run of `barnabas adopt next --beside`: both nodes through the brokers, the new one through its directories too."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from barnabas.adopt.beside_sight import Coming, Leaving, Sight
from barnabas.adopt.beside_step import beside_turn
from barnabas.adopt.change import Act, Turn
from barnabas.adopt.cluster_reader import read_cluster
from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.directory_lock import holder_of
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.next_step import unhealthy
from barnabas.adopt.node_watch import obstacles_of_program
from barnabas.adopt.observation import Seen
from barnabas.adopt.observer import Observer
from barnabas.cli.cluster_nodes import SILENT_MS
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin, PartitionDescription, Quorum, QuorumReplica
from barnabas.client.program import Program
from barnabas.log import meta_properties
from barnabas.log.disk import OsDisk
from barnabas.protocol.errors import KafkaError, RetriableError
from barnabas.words.printable import printable

__all__ = ["TwoNodes", "refusals_beside", "sight_of"]

_CAUGHT_UP_MS = 2_000
_HARMLESS = "lost+found"


class TwoNodes:
    """Two nodes and their cluster.

    Args:
        file: of the node that comes, as `barnabas start` would read it.
        leaving: the id of the node that it replaces.
        release: of Apache Kafka, for the way back; None if it was not given.

    Attributes:
        cluster_id: None until a broker has answered.
    """

    def __init__(
        self, admin: Admin, file: GivenFile, leaving: int, wanted: Program, release: str | None = None
    ) -> None:
        assert file.node_id is not None, "the command has refused such a file"
        self._admin, self._file, self._coming, self._leaving = admin, file, file.node_id, leaving
        self._wanted, self._release = wanted, release
        self._observer = Observer(admin)
        self._has_seen = False
        self.cluster_id: str | None = None

    def __repr__(self) -> str:
        return f"<TwoNodes {self._coming} for {self._leaving}>"

    def turn(self, asked: Act | None) -> Turn:
        """Look, and return what comes next; `asked` is the last action of this run."""
        return beside_turn(self.look(), self._wanted, asked)

    def look(self) -> Sight | None:
        """Return what is seen; None if no broker answers.

        Raises:
            KafkaError: a broker answers for the first time, and rejects the login or the question.
        """
        try:
            seen = self._observer.look(only=(self._coming, self._leaving))
            partitions = list(self._admin.describe_partitions().values())
            moving = len(self._admin.list_reassignments())
        except KafkaError as error:
            if not self._has_seen and not isinstance(error, RetriableError):
                raise
            return None
        self._has_seen = True
        self.cluster_id = seen.cluster_id
        found = sight_of(seen, self._observer.quorum, partitions, self._file, self._leaving)
        coming = found.coming._replace(is_formatted=self._is_formatted(), is_held=self._is_held())
        return found._replace(coming=coming, moving=moving)

    def refusals(self, *, needs_health: bool) -> tuple[str, ...]:
        """Return why nothing may be changed now."""
        try:
            state = read_cluster(self._admin, time.time_ns() // 1_000_000)
            seen = self._observer.look()._replace(features=state.features)
        except KafkaError as error:
            return (f"the cluster cannot be read: {error.message}",)
        found = list(
            refusals_beside(
                state, seen, self._file, self._leaving, self._wanted, self._release, needs_health=needs_health
            )
        )
        if not self._is_formatted():
            found += self._strange()
        return tuple(found)

    def _strange(self) -> Iterator[str]:
        """Yield which directories are not formatted, and hold something."""
        for each in self._file.directories:
            if os.path.isdir(each.path) and _meta(each.path) is None:
                inside = [name for name in os.listdir(each.path) if name != _HARMLESS]
                if inside:
                    yield (
                        f"{printable(each.path)} is not formatted, and holds {counted(len(inside), 'file')}:"
                        " nothing is formatted that may have records; name an empty directory"
                    )

    def _is_formatted(self) -> bool:
        return all(_meta(each.path) is not None for each in self._file.directories)

    def _is_held(self) -> bool:
        return any(holder_of(each.path) is not None for each in self._file.directories)


def _meta(path: str) -> meta_properties.MetaProperties | None:
    return meta_properties.read(OsDisk(), path) if os.path.isdir(path) else None


def sight_of(
    seen: Seen, quorum: Quorum | None, partitions: Sequence[PartitionDescription], file: GivenFile, leaving: int
) -> Sight:
    """Return what the brokers say of both nodes; what the directories say is left out."""
    assert file.node_id is not None
    replicas = {} if quorum is None else {each.id: each for each in quorum.replicas}
    voters = [each for each in replicas.values() if each.is_voter]
    return Sight(
        _coming(seen, quorum, replicas.get(file.node_id), file),
        _leaving(seen, quorum, replicas.get(leaving), partitions, leaving),
        seen.leader,
        any(each.directory_id is not None for each in voters),
        behind=sum(len(each.replicas) - len(each.isr) for each in partitions),
        nodes=tuple(sorted(seen.nodes)),
    )


def _coming(seen: Seen, quorum: Quorum | None, replica: QuorumReplica | None, file: GivenFile) -> Coming:
    assert file.node_id is not None
    node = seen.nodes.get(file.node_id)
    reads = replica is not None and _reads(quorum, replica)
    is_broker = node is not None and "broker" in node.roles
    serves = (is_broker and node is not None and not node.is_down) if "broker" in file.roles else reads
    return Coming(
        file.node_id,
        file.roles,
        Program.SILENT if node is None else node.program,
        False,
        False,
        serves,
        replica is not None and replica.is_voter,
        None if replica is None else _lag(quorum, replica),
    )


def _leaving(
    seen: Seen,
    quorum: Quorum | None,
    replica: QuorumReplica | None,
    partitions: Sequence[PartitionDescription],
    leaving: int,
) -> Leaving:
    node = seen.nodes.get(leaving)
    is_broker = node is not None and "broker" in node.roles
    is_voter = replica is not None and replica.is_voter
    reads = replica is not None and _reads(quorum, replica)
    roles = (("broker", is_broker), ("controller", is_voter or (reads and not is_broker)))
    return Leaving(
        leaving,
        tuple(role for role, has in roles if has),
        is_broker,
        is_broker and node is not None and not node.is_down,
        node.program != Program.STOPPED if is_broker and node is not None else reads,
        sum(leaving in each.replicas for each in partitions),
        is_voter,
    )


def _reads(quorum: Quorum | None, replica: QuorumReplica) -> bool:
    """Return whether a replica of the metadata log has read lately."""
    now_ms = (
        -1
        if quorum is None
        else max((each.last_fetch_ms for each in quorum.replicas if each.id == quorum.leader), default=-1)
    )
    return replica.last_fetch_ms >= now_ms - SILENT_MS


def _lag(quorum: Quorum | None, replica: QuorumReplica) -> int | None:
    leader = None if quorum is None else next((each for each in quorum.replicas if each.id == quorum.leader), None)
    if leader is None or leader.log_end_offset < 0 or replica.log_end_offset < 0:
        return None
    if 0 <= leader.last_fetch_ms - replica.last_caught_up_ms <= _CAUGHT_UP_MS:
        return 0
    return max(0, leader.log_end_offset - replica.log_end_offset)


def refusals_beside(
    state: ClusterState,
    seen: Seen,
    file: GivenFile,
    leaving: int,
    wanted: Program,
    release: str | None,
    *,
    needs_health: bool,
) -> Iterator[str]:
    """Yield each obstacle as a sentence.

    Args:
        needs_health: whether a fault of the cluster is an obstacle.
    """
    assert file.node_id is not None
    for each in file.directories:
        if each.meta is not None and each.meta.cluster_id != seen.cluster_id:
            yield f"{printable(each.path)} is a directory of another cluster: {each.meta.cluster_id}, not {seen.cluster_id}"
            return
    if needs_health:
        if state.problems is None:
            yield "whether the cluster is healthy could not be read"
        yield from unhealthy(seen._replace(problems=tuple(state.problems or ())), {file.node_id, leaving})
    # A file whose directory is not formatted yet has that as its mistake.
    unformatted = tuple(each.path for each in file.directories if each.meta is None)
    mistakes = tuple(each for each in file.mistakes if not (unformatted and each.startswith(unformatted)))
    yield from obstacles_of_program(state, seen, replace(file, mistakes=mistakes), wanted, release)
