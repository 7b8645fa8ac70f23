"""The view of one run of `barnabas adopt next` or `back`: the cluster through its brokers, the node through its directory."""

from __future__ import annotations

import time
from collections.abc import Iterator

from barnabas.adopt.change import Act, Turn
from barnabas.adopt.cluster_reader import read_cluster
from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.files import findings_of_files
from barnabas.adopt.finding import Verdict, merged
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.groups import findings_of_groups
from barnabas.adopt.next_step import gate, next_turn
from barnabas.adopt.observation import Seen
from barnabas.adopt.observer import Observer
from barnabas.adopt.own_files import OwnFiles
from barnabas.adopt.settings import findings_of_settings
from barnabas.adopt.way_back import obstacles_of_way_back
from barnabas.adopt.window import findings_of_versions
from barnabas.cli.wording import listed
from barnabas.client.admin import Admin
from barnabas.client.program import Program
from barnabas.protocol.errors import KafkaError, RetriableError

__all__ = ["NodeWatch", "obstacles_of_program", "refusals_of"]


class NodeWatch:
    """A node and its cluster.

    Args:
        release: of Apache Kafka, for the way back; None if it was not given.
    """

    def __init__(self, admin: Admin, files: OwnFiles, wanted: Program, release: str | None = None) -> None:
        self._admin, self._files = admin, files
        self._wanted, self._release = wanted, release
        self._observer = Observer(admin)
        self._has_seen = False

    def turn(self, asked: Act | None) -> Turn:
        """Look, and return what comes next; `asked` is the last action of this run."""
        return next_turn(self.look(), self._files.now(), self._wanted, asked)

    def look(self) -> Seen | None:
        """Return the cluster with the program of the node; None if no broker answers.

        Raises:
            KafkaError: a broker answers for the first time, and rejects the login or the question.
        """
        try:
            found = self._observer.look(only=(self._files.node_id,))
        except KafkaError as error:
            if not self._has_seen and not isinstance(error, RetriableError):
                raise
            return None
        self._has_seen = True
        return found

    def refusals(self, *, needs_health: bool) -> tuple[str, ...]:
        """Return why the node may not be stopped, or, if it is away, why it may not be started as the wanted program."""
        is_away = not needs_health
        try:
            state = read_cluster(self._admin, time.time_ns() // 1_000_000)
            seen = self._observer.look()._replace(features=state.features, moving=state.moving)
        except KafkaError as error:
            # A node that was the whole cluster cannot be asked before it starts.
            return () if is_away and self._files.file.is_alone else (f"the cluster cannot be read: {error.message}",)
        if state.problems is None and not is_away:
            why = listed([f"{what}: {why}" for what, why in state.unseen])
            return (f"whether the cluster is healthy could not be read: {why}",)
        seen = seen._replace(problems=tuple(state.problems or ()))
        return tuple(refusals_of(state, seen, self._files, self._wanted, self._release, is_away=is_away))


def refusals_of(
    state: ClusterState, seen: Seen, files: OwnFiles, wanted: Program, release: str | None, *, is_away: bool
) -> Iterator[str]:
    """Yield each obstacle as a sentence.

    Args:
        is_away: the node does not run: the health of the cluster is no reason to leave it so.
    """
    if seen.cluster_id is not None and seen.cluster_id != files.cluster_id:
        yield f"{files.root} is a directory of another cluster: {files.cluster_id}, not {seen.cluster_id}"
        return
    if not is_away:
        yield from gate(seen, files.now())
    yield from obstacles_of_program(state, seen, files.file, wanted, release)


def obstacles_of_program(
    state: ClusterState, seen: Seen, file: GivenFile, wanted: Program, release: str | None
) -> Iterator[str]:
    """Yield why the node of a file cannot be that program: for barnabas what `adopt check` says about everything but health."""
    if wanted == Program.KAFKA:
        yield from obstacles_of_way_back(seen, release)
        return
    assert file.node_id is not None
    findings = [
        *findings_of_versions(state.features),
        *findings_of_files([file], state),
        *findings_of_settings(state, {file.node_id}),
        *findings_of_groups(state),
    ]
    for each in merged(findings):
        if each.verdict == Verdict.BLOCKS:
            yield f"{listed(each.where)}: {each.what} ({each.remedy})"
