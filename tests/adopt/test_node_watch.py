"""What forbids a change, each in one sentence; and what is seen where no broker answers."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest

from barnabas.adopt.cluster_state import ClusterState, Problem
from barnabas.adopt.given_directory import GivenDirectory
from barnabas.adopt.given_file import GivenFile
from barnabas.adopt.node_watch import NodeWatch, refusals_of
from barnabas.adopt.observation import OwnNode, Seen
from barnabas.adopt.own_files import OwnFiles
from barnabas.adopt.window import HIGHEST
from barnabas.client.admin import Admin
from barnabas.client.errors import OtherSecurity
from barnabas.client.features import METADATA_VERSION, BrokerFeatures
from barnabas.client.program import Program
from barnabas.log.meta_properties import MetaProperties
from tests.adopt.sights import KAFKA, OURS, STOPPED, node, seen
from tests.adopt.states import CLUSTER_ID, HEALTHY

DIRECTORY = GivenDirectory("/data", meta=MetaProperties(CLUSTER_ID, 2))
FILES = OwnFiles(GivenFile("server.properties", 2, ("broker",), directories=(DIRECTORY,)), 2, "/data", CLUSTER_ID)
TOO_NEW = {1: BrokerFeatures({METADATA_VERSION: (1, HIGHEST + 1)}, {METADATA_VERSION: HIGHEST + 1}, 9)}
BEFORE = seen(KAFKA, KAFKA, KAFKA)


def refused(
    state: ClusterState = HEALTHY,
    found: Seen = BEFORE,
    files: OwnFiles = FILES,
    wanted: Program = OURS,
    release: str | None = None,
    *,
    is_away: bool = False,
) -> list[str]:
    found = found._replace(features=state.features)
    with mock.patch.object(OwnFiles, "now", lambda files: OwnNode(files.node_id, is_held=True)):
        return list(refusals_of(state, found, files, wanted, release, is_away=is_away))


def test_nothing_is_in_the_way() -> None:
    assert refused() == []
    assert refused(found=seen(OURS, OURS, OURS), wanted=KAFKA, release="4.4") == []


def test_a_version_outside_the_window() -> None:
    (found,) = refused(replace(HEALTHY, features=TOO_NEW))
    assert found.startswith(f"cluster: metadata.version has level {HIGHEST + 1}; barnabas supports")
    assert refused(replace(HEALTHY, features=TOO_NEW), is_away=True) == [found]


def test_a_directory_of_another_cluster() -> None:
    (found,) = refused(files=FILES._replace(cluster_id="QwvTT5vyS0-Cb4-Yq9sNmQ"))
    assert found == f"/data is a directory of another cluster: QwvTT5vyS0-Cb4-Yq9sNmQ, not {CLUSTER_ID}"


def test_a_cluster_that_is_not_healthy_and_only_a_running_node_is_refused() -> None:
    ill = BEFORE._replace(problems=(Problem("broker is fenced", ["broker 3"], "start it"),))
    assert refused(found=ill) == ["the cluster is not healthy: broker is fenced: broker 3 (start it)"]
    assert refused(found=ill, is_away=True) == []


def test_another_node_is_down() -> None:
    found = BEFORE._replace(nodes={**BEFORE.nodes, 3: node(3, STOPPED)})
    (reason,) = refused(found=found)
    assert reason.startswith("node 3 is down: start it first")


def test_records_in_old_formats() -> None:
    directory = replace(DIRECTORY, old_segments=("/data/a-0/0.log",))
    (found,) = refused(files=FILES._replace(file=replace(FILES.file, directories=(directory,))))
    assert found.startswith("/data: 1 segment with records in message format v0 or v1")


def test_a_file_with_which_barnabas_does_not_start_keeps_no_node_from_going_back() -> None:
    files = FILES._replace(file=replace(FILES.file, mistakes=("authorizer.class.name=Mine",)))
    (found,) = refused(files=files)
    assert found.startswith("server.properties: barnabas does not start with it: authorizer.class.name=Mine")
    assert refused(files=files, found=seen(KAFKA, OURS, OURS), wanted=KAFKA) == []


def test_the_levels_that_apache_kafka_does_not_know() -> None:
    (found,) = refused(found=seen(OURS, OURS, OURS), wanted=KAFKA, release="4.0")
    assert "which Apache Kafka 4.0 does not know" in found


def test_no_broker_answers() -> None:
    with Admin("127.0.0.1:1", timeout_ms=100) as admin:
        assert NodeWatch(admin, FILES, OURS).look() is None
        (found,) = NodeWatch(admin, FILES, OURS).refusals(needs_health=False)
        assert found.startswith("the cluster cannot be read: cannot reach 127.0.0.1:1")
        alone = FILES._replace(file=replace(FILES.file, is_alone=True))
        assert NodeWatch(admin, alone, OURS).refusals(needs_health=False) == ()


def test_a_wrong_login_is_no_silence() -> None:
    wrong = OtherSecurity("it speaks TLS")
    with Admin("127.0.0.1:1") as admin:
        watch = NodeWatch(admin, FILES, OURS)
        with mock.patch("barnabas.adopt.observer.Observer.look", side_effect=[wrong, BEFORE, wrong]):
            with pytest.raises(OtherSecurity):
                watch.look()
            assert watch.look() == BEFORE
            assert watch.look() is None


def test_the_health_cannot_be_read() -> None:
    state = replace(HEALTHY, problems=None)
    with (
        Admin("127.0.0.1:1") as admin,
        mock.patch("barnabas.adopt.node_watch.read_cluster", return_value=state),
        mock.patch("barnabas.adopt.observer.Observer.look", return_value=BEFORE),
    ):
        (found,) = NodeWatch(admin, FILES, OURS).refusals(needs_health=True)
    assert found.startswith("whether the cluster is healthy could not be read")
