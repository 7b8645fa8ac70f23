"""What is seen of both nodes, and why nothing may be changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

from barnabas.adopt.beside_watch import TwoNodes, refusals_beside, sight_of
from barnabas.adopt.cluster_state import Problem
from barnabas.adopt.given_directory import GivenDirectory, read_directory
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.observation import Seen
from barnabas.adopt.window import HIGHEST
from barnabas.client.admin import Admin, Quorum, QuorumReplica
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.client.program import Program
from barnabas.log.meta_properties import MetaProperties
from barnabas.protocol.primitives import Uuid
from tests.adopt.sights import KAFKA, OURS, STOPPED, node, seen
from tests.adopt.states import CLUSTER_ID, HEALTHY

FILE = GivenFile("server.properties", 4, ("broker", "controller"))
BEFORE = seen(KAFKA, KAFKA, KAFKA)
DIRECTORY_ID = Uuid(bytes(range(16)))


def replica(node_id: int, end: int, *, votes: bool = True, ago_ms: int = 0) -> QuorumReplica:
    return QuorumReplica(node_id, end, votes, DIRECTORY_ID, 100_000 - ago_ms, 100_000 - ago_ms)


def quorum(*more: QuorumReplica) -> Quorum:
    return Quorum(1, 5, 100, [replica(1, 100), replica(2, 100), replica(3, 99), *more])


def test_before_anything_is_done():
    found = sight_of(seen(KAFKA, KAFKA, KAFKA), quorum(), [], FILE, 2)
    assert (found.coming.serves, found.coming.is_voter, found.coming.lag, found.can_vote) == (False, False, None, True)
    assert found.leaving == (2, ("broker", "controller"), True, True, True, 0, True)
    assert found.nodes == (1, 2, 3)


def test_a_node_that_has_joined():
    cluster = seen(KAFKA, KAFKA, KAFKA)
    cluster = cluster._replace(nodes={**cluster.nodes, 4: node(4, OURS)})
    assert sight_of(cluster, quorum(replica(4, 60, votes=False)), [], FILE, 2).coming.lag == 0, "it had all lately"
    found = sight_of(cluster, quorum(replica(4, 60, votes=False, ago_ms=5_000)), [], FILE, 2).coming
    assert (found.program, found.serves, found.is_voter, found.lag) == (Program.BARNABAS, True, False, 40)


def test_a_node_that_is_gone():
    cluster = seen(KAFKA, KAFKA, KAFKA)
    cluster = cluster._replace(nodes={each: cluster.nodes[each] for each in (1, 3)})
    gone = quorum()._replace(replicas=[replica(1, 100), replica(3, 100), replica(2, 50, votes=False, ago_ms=60_000)])
    assert sight_of(cluster, gone, [], FILE, 2).leaving == (2, (), False, False, False, 0, False)


def test_a_controller_alone_runs_as_long_as_it_reads():
    cluster = seen(KAFKA, KAFKA, KAFKA)
    cluster = cluster._replace(nodes={each: cluster.nodes[each] for each in (1, 3)})
    reads = quorum()._replace(replicas=[replica(1, 100), replica(3, 100), replica(2, 99, votes=False)])
    assert sight_of(cluster, reads, [], FILE, 2).leaving == (2, ("controller",), False, False, True, 0, False)


def test_a_fixed_quorum():
    fixed = quorum()._replace(replicas=[each._replace(directory_id=None) for each in quorum().replicas])
    assert not sight_of(seen(KAFKA, KAFKA, KAFKA), fixed, [], FILE, 2).can_vote


def refused(
    file: GivenFile = FILE,
    *,
    found: Seen = BEFORE,
    wanted: Program = OURS,
    needs_health: bool = True,
    **fields: object,
) -> list[str]:
    given = replace(HEALTHY, **fields)  # type: ignore[arg-type]
    return list(refusals_beside(given, found, file, 2, wanted, "4.3", needs_health=needs_health))


def test_a_healthy_cluster_is_not_refused():
    assert refused(problems=()) == []


def test_a_cluster_that_is_not_healthy():
    problem = Problem("broker is fenced", ["broker 3"], "start it")
    assert refused(problems=(problem,)) == ["the cluster is not healthy: broker is fenced: broker 3 (start it)"]
    assert refused(problems=(problem,), needs_health=False) == []


def test_another_node_is_down():
    found = BEFORE._replace(nodes={**BEFORE.nodes, 3: node(3, STOPPED)})
    (reason,) = refused(found=found, problems=())
    assert reason.startswith("node 3 is down: start it first")
    assert refused(found=found, problems=(), needs_health=False) == []
    leaves = BEFORE._replace(nodes={**BEFORE.nodes, 2: node(2, STOPPED)})
    assert refused(found=leaves, problems=()) == [], "the node that leaves may be away"


def test_a_version_outside_the_window():
    too_new = {1: BrokerFeatures({METADATA_VERSION: (1, HIGHEST + 1)}, {METADATA_VERSION: HIGHEST + 1}, 9)}
    (reason,) = refused(problems=(), features=too_new)
    assert reason.startswith(f"cluster: metadata.version has level {HIGHEST + 1}; barnabas supports")


def test_a_directory_of_another_cluster():
    directory = GivenDirectory("/data", meta=MetaProperties("QwvTT5vyS0-Cb4-Yq9sNmQ", 4))
    (reason,) = refused(replace(FILE, directories=(directory,)), problems=())
    assert reason == f"/data is a directory of another cluster: QwvTT5vyS0-Cb4-Yq9sNmQ, not {CLUSTER_ID}"


def test_a_directory_that_is_not_formatted_yet_is_no_mistake_and_others_are(tmp_path: Path):
    file = replace(
        FILE,
        directories=(read_directory(str(tmp_path)),),
        mistakes=(f"{tmp_path} is not formatted", "authorizer.class.name=Mine"),
    )
    (found,) = refused(file, problems=())
    assert found.startswith("server.properties: barnabas does not start with it: authorizer.class.name=Mine")


def test_a_directory_with_files_is_not_formatted(tmp_path: Path):
    (tmp_path / "orders-0").mkdir()
    file = replace(FILE, directories=(read_directory(str(tmp_path)),))
    with (
        Admin("127.0.0.1:1", timeout_ms=100) as admin,
        mock.patch("barnabas.adopt.beside_watch.read_cluster", return_value=replace(HEALTHY, problems=())),
        mock.patch("barnabas.adopt.observer.Observer.look", return_value=seen(KAFKA, KAFKA, KAFKA)),
    ):
        (found,) = TwoNodes(admin, file, 2, OURS).refusals(needs_health=True)
    assert "is not formatted, and holds 1 file: nothing is formatted that may have records" in found


def test_no_broker_answers():
    with Admin("127.0.0.1:1", timeout_ms=100) as admin:
        watch = TwoNodes(admin, FILE, 2, OURS)
        assert watch.look() is None
        (found,) = watch.refusals(needs_health=True)
    assert found.startswith("the cluster cannot be read: cannot reach 127.0.0.1:1")
