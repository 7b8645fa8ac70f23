"""`cluster voter`: who may join and leave the voters, and what the quorum is asked for."""

from __future__ import annotations

from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.admin import Quorum, QuorumReplica
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import Uuid
from tests.cli.made_up_cluster import MadeUpAdmin

DIRECTORY = Uuid(bytes(range(16)))


def replica(
    node: int, *, votes: bool = True, directory: Uuid | None = DIRECTORY, fetched_ms: int = 50_000
) -> QuorumReplica:
    return QuorumReplica(node, 9, votes, directory, fetched_ms, fetched_ms)


class Controllers(MadeUpAdmin):
    """Voters 1 (the leader), 2 and 3; 4 observes."""

    def __init__(
        self,
        *replicas: QuorumReplica,
        error: KafkaError | None = None,
        listener: str | None = "CONTROLLER",
    ) -> None:
        super().__init__()
        self.replicas = {each.id: each for each in replicas} or {
            each: replica(each, votes=each < 4) for each in (1, 2, 3, 4)
        }
        self._error = error
        self._listener = listener
        self.asked: list[tuple[object, ...]] = []

    def describe_quorum(self) -> Quorum:
        return Quorum(1, 5, 9, list(self.replicas.values()), {1: "h:9093"}, self._listener)

    def add_voter(self, *arguments: object) -> KafkaError | None:
        return self._change(True, *arguments)

    def remove_voter(self, *arguments: object) -> KafkaError | None:
        return self._change(False, *arguments)

    def _change(self, votes: bool, *arguments: object) -> KafkaError | None:
        self.asked.append(arguments)
        if self._error is None:
            node = arguments[0]
            assert isinstance(node, int)
            self.replicas[node] = replica(node, votes=votes)
        return self._error


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["cluster", "voter", *arguments], prog_name="barnabas")


ADD = ("add", "4", "--at", "four.example:9093")


def test_an_observer_votes() -> None:
    cluster = Controllers()
    result = run(cluster, *ADD)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "NODE  ROLE\n1     leader\n2     follower\n3     follower\n4     follower\n"
    assert cluster.asked == [(4, DIRECTORY, "CONTROLLER", "four.example", 9093)]


def test_a_voter_only_reads() -> None:
    cluster = Controllers()
    result = run(cluster, "remove", "3")
    assert result.stdout == "NODE  ROLE\n1     leader\n2     follower\n3     observer\n4     observer\n"
    assert cluster.asked == [(3, DIRECTORY)]


def test_the_name_of_the_listener_can_be_given() -> None:
    cluster = Controllers(listener=None)
    assert "name it with --listener" in run(cluster, *ADD).stderr
    assert run(cluster, *ADD, "--listener", "INNER").exit_code == 0
    assert cluster.asked == [(4, DIRECTORY, "INNER", "four.example", 9093)]


@pytest.mark.parametrize(("arguments", "line"), [(ADD, "4     would vote"), (("remove", "1"), "1     would only read")])
def test_a_dry_run_changes_nothing(arguments: tuple[str, ...], line: str) -> None:
    cluster = Controllers()
    assert line in run(cluster, *arguments, "--dry-run").stdout
    assert cluster.asked == []


SILENT = 30_000
FIXED = (
    "the voters of this quorum are fixed: controller.quorum.voters lists them (kraft.version 0)"
    " (`kafka-features.sh upgrade --feature kraft.version=1` lets them change)"
)


@pytest.mark.parametrize(
    ("cluster", "arguments", "error"),
    [
        (Controllers(), ("add", "2", "--at", "h:1"), "node 2 votes already (`barnabas cluster quorum` shows the voters)"),
        (
            Controllers(),
            ("add", "9", "--at", "h:1"),
            "node 9 does not read the metadata log (start it with process.roles=controller, in a directory that was formatted with"
            " --no-initial-controllers)",
        ),
        (Controllers(), ("remove", "4"), "node 4 does not vote (the voters are: 1, 2, 3)"),
        (
            Controllers(replica(1)),
            ("remove", "1"),
            "node 1 is the only voter (add another one first: `barnabas cluster voter add NODE --at HOST:PORT`)",
        ),
        (
            Controllers(replica(1), replica(2, fetched_ms=SILENT), replica(3)),
            ("remove", "3"),
            "of the other 2 voters 2 does not read the metadata log (start it first: without a majority the cluster has no"
            " controller)",
        ),
        (Controllers(replica(1), replica(2, directory=None)), ("remove", "2"), FIXED),
        (Controllers(error=error_for(ErrorCode.UNSUPPORTED_VERSION)), ADD, FIXED),
        (
            Controllers(error=error_for(ErrorCode.REQUEST_TIMED_OUT, "the address does not answer")),
            ADD,
            "node 4: the address does not answer (check that the address is a broker's; --timeout-ms waits longer)",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(cluster: Controllers, arguments: tuple[str, ...], error: str) -> None:
    result = run(cluster, *arguments)
    assert (result.exit_code, result.stderr) == (1, f"error: {error}\n")


def test_a_silent_voter_may_leave() -> None:
    cluster = Controllers(replica(1), replica(2), replica(3, fetched_ms=SILENT))
    assert run(cluster, "remove", "3").exit_code == 0


def test_an_address_has_a_port() -> None:
    result = run(Controllers(), "add", "4", "--at", "four.example")
    assert (result.exit_code, "'four.example' is not HOST:PORT" in result.stderr) == (2, True)
