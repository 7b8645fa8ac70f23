"""Does each step of a replacement: formats, starts, adds and removes voters, moves replicas, stops, forgets.

Each step may have been done already by a run that was killed: what is so is no failure.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable

from barnabas.adopt.change import Act, StandsStill
from barnabas.adopt.stop_and_start import Operator
from barnabas.cli.wording import counted, listed
from barnabas.client import placement
from barnabas.client.admin import Admin, Quorum, TopicPartition
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.client.placement import Plan, TooFewBrokers
from barnabas.client.reassignments import Cancelled, Stalled
from barnabas.metadata.metadata_version import OLDEST_FORMAT
from barnabas.protocol.errors import ErrorCode, KafkaError, RetriableError
from barnabas.protocol.metadata_versions import NAMES
from barnabas.words.printable import printable

__all__ = ["TwoNodesHand", "format_command", "release_of", "replacement_plan"]

_AT_ONCE = 20
_TIMES = 3
"""A step whose answer is lost may have been done: it is asked again, and then counts as done."""
_DONE_ALREADY = {
    Act.ADD_VOTER: ErrorCode.DUPLICATE_VOTER,
    Act.REMOVE_VOTER: ErrorCode.VOTER_NOT_FOUND,
    Act.FORGET: ErrorCode.BROKER_ID_NOT_REGISTERED,
}


def format_command(cluster_id: str, path: str, *, joins_voters: bool, release: str | None) -> list[str]:
    """Return the words after `barnabas` that format the directories of a file.

    Args:
        joins_voters: the node is a controller of a quorum whose voters can change.
        release: the metadata format of the cluster, of `release_of`: a node does not start on a directory with a level that it does not
            know, although it takes all levels from the quorum that it joins.
    """
    return [
        "storage",
        "format",
        "-g",
        "-t",
        cluster_id,
        "-c",
        path,
        *([] if release is None else ["--release-version", release]),
        *(["--no-initial-controllers"] if joins_voters else []),
    ]


def release_of(features: Iterable[BrokerFeatures | KafkaError]) -> str | None:
    """Return the metadata.version that a cluster has finalized, as `storage format` takes it; None if no broker says one that it takes.

    A cluster below the oldest metadata format that a directory may begin with gets that one: every Apache Kafka of the window knows it.
    """
    answers = [each for each in features if not isinstance(each, KafkaError)]
    latest = max(answers, key=lambda each: each.finalized_epoch, default=None)
    level = None if latest is None else latest.finalized.get(METADATA_VERSION)
    return None if level is None else NAMES.get(max(level, OLDEST_FORMAT))


def replacement_plan(
    replicas: dict[TopicPartition, list[int]],
    leaving: int,
    coming: int,
    serving: list[int],
    racks: dict[int, str | None],
) -> Plan:
    """Return the plan that gives each replica of one broker to the other, in the same place; those that both have go elsewhere.

    Raises:
        TooFewBrokers: both have a replica, and no other broker can take one.
    """
    held = {at: each for at, each in replicas.items() if leaving in each}
    plan = {
        at: [coming if broker == leaving else broker for broker in each]
        for at, each in held.items()
        if coming not in each
    }
    if both := {at for at, each in held.items() if coming in each}:
        after = {at: plan.get(at, each) for at, each in replicas.items()}
        drained = placement.drain(after, leaving, serving, racks)
        plan |= {at: drained[at] for at in both}
    return plan


class TwoNodesHand:
    """The hand of one run.

    Args:
        path: of the file of the node that comes.
        address: of its controller, as others reach it; None if it has none.
    """

    def __init__(
        self,
        admin: Admin,
        operator: Operator,
        *,
        coming: int,
        leaving: int,
        path: str,
        is_controller: bool,
        address: tuple[str, int] | None,
        say: Callable[[str], None],
    ) -> None:
        self._admin, self._operator, self._say = admin, operator, say
        self._coming, self._leaving, self._path = coming, leaving, path
        self._is_controller, self._address = is_controller, address

    def __repr__(self) -> str:
        return f"<TwoNodesHand {self._coming} for {self._leaving}>"

    def do(self, act: Act) -> None:
        """Do a step; START and STOP only begin.

        Raises:
            StandsStill: it failed.
        """
        steps = {
            Act.FORMAT: self._format,
            Act.START: lambda: self._operator.do(Act.START),
            Act.ADD_VOTER: self._add_voter,
            Act.MOVE: self._move,
            Act.REMOVE_VOTER: self._remove_voter,
            Act.STOP: lambda: self._operator.do(Act.STOP),
            Act.FORGET: self._forget,
        }
        for left in reversed(range(_TIMES)):
            try:
                return steps[act]()
            except KafkaError as error:
                if not left or not isinstance(error, RetriableError):
                    raise StandsStill(f"{act.value}: {error.message}") from None
                self._say(f"{act.value}: {error.message}; asks again")

    def failure(self) -> str | None:
        """Return how the last command of the operator failed."""
        return self._operator.failure()

    def _format(self) -> None:
        cluster_id = self._admin.describe_cluster().cluster_id
        assert cluster_id is not None, "a cluster with KRaft has an id"
        release = release_of(self._admin.describe_features().values())
        joins_voters = self._is_controller and self._can_vote()
        words = format_command(cluster_id, self._path, joins_voters=joins_voters, release=release)
        self._say(f"format the directory of node {self._coming}: barnabas {' '.join(map(printable, words))}")
        done = subprocess.run([sys.executable, "-m", "barnabas", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it says nothing"]
            raise StandsStill(f"the directory of node {self._coming} is not formatted: {printable(last[0])}")

    def _quorum(self) -> Quorum:
        return self._admin.describe_quorum()

    def _can_vote(self) -> bool:
        return any(each.directory_id is not None for each in self._quorum().voters)

    def _add_voter(self) -> None:
        found = self._quorum()
        replica = next((each for each in found.replicas if each.id == self._coming), None)
        if replica is None or replica.directory_id is None or found.listener is None or self._address is None:
            raise StandsStill(f"node {self._coming} cannot vote: its address or its directory is not known")
        self._say(f"add voter {self._coming}")
        host, port = self._address
        self._check(
            Act.ADD_VOTER,
            self._admin.add_voter(self._coming, replica.directory_id, found.listener, host, port),
        )

    def _remove_voter(self) -> None:
        found = self._quorum()
        replica = next((each for each in found.voters if each.id == self._leaving), None)
        if replica is None or replica.directory_id is None:
            return
        self._say(f"remove voter {self._leaving}")
        self._check(Act.REMOVE_VOTER, self._admin.remove_voter(self._leaving, replica.directory_id))

    def _move(self) -> None:
        found = self._admin.describe_cluster()
        replicas = {at: list(each.replicas) for at, each in self._admin.describe_partitions().items()}
        racks = {node.id: node.rack for node in (*found.brokers, *found.fenced)}
        try:
            plan = replacement_plan(replicas, self._leaving, self._coming, [each.id for each in found.brokers], racks)
        except TooFewBrokers as error:
            raise StandsStill(f"no broker can take the replica of {error.partition}: start another one") from None
        self._say(f"move {counted(len(plan), 'replica')} of node {self._leaving} to node {self._coming}")
        try:
            outcomes = self._admin.reassign(plan, at_once=_AT_ONCE)
        except Stalled as stalled:
            brokers = sorted({each for waits in stalled.waits.values() for each in waits})
            raise StandsStill(f"the replicas move no further until these brokers serve: {listed(brokers)}") from None
        except Cancelled as cancelled:
            raise StandsStill(f"the moves of {listed(cancelled.partitions)} were cancelled") from None
        for at, outcome in outcomes.items():
            if outcome is not None:
                raise StandsStill(f"the replica of {at} does not move: {outcome.message}")

    def _forget(self) -> None:
        self._say(f"forget node {self._leaving}")
        self._check(Act.FORGET, self._admin.unregister_broker(self._leaving))

    @staticmethod
    def _check(act: Act, error: KafkaError | None) -> None:
        if error is not None and error.code != _DONE_ALREADY[act]:
            raise error
