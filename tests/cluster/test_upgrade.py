"""Three nodes of an older barnabas under load become the present one by `cluster upgrade`, go back, and are upgraded for good.

On the way back, and on the second way there, each node is killed and not stopped: its files are recovered by the other program.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import rolling
from barnabas.main import command_group
from tests import older_release
from tests.cluster.cluster import Cluster
from tests.cluster.exchange import RECORDS, TRANSACTIONS, Clients, all_work, clients, finish, judge
from tests.cluster.node_process import BarnabasNode, NodeProcess
from tests.cluster.older_barnabas import OlderBarnabasNode
from tests.cluster.replicas import check_bytes_identical
from tests.cluster.topics import create_safe_topics
from tests.cluster.waiting import wait_for
from tests.older_release import NoHistory

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

OLD_FORMAT = "4.2-IV1"
"""Lower than what either of them supports, so that there is a feature to raise."""
PROGRAMS: dict[str, type[NodeProcess]] = {"new": BarnabasNode, "old": OlderBarnabasNode}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    try:
        monkeypatch.setattr(OlderBarnabasNode, "source", older_release.unpack(tmp_path / "older"), raising=False)
    except NoHistory as reason:
        pytest.skip(str(reason))
    made = Cluster("barnabas", tmp_path)
    for node_id in list(made.nodes):
        made.change_program(node_id, OlderBarnabasNode).release_version = OLD_FORMAT
    with made:
        yield made


def test_an_older_cluster_is_upgraded_goes_back_and_is_upgraded_for_good(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert package_of(OlderBarnabasNode) != package_of(BarnabasNode)
    changed: list[tuple[str, int]] = []

    def run(words: Sequence[str], node: int, within_s: float) -> None:
        end, program, _ = words
        getattr(cluster[node], end)()
        cluster.change_program(node, PROGRAMS[program]).start()
        changed.append((program, node))

    monkeypatch.setattr(rolling, "run_command", run)
    create_safe_topics(cluster, [RECORDS, TRANSACTIONS])
    with clients(cluster) as work:
        wait_for("all clients work", lambda: all_work(work))
        result = goes_on(cluster, work, "upgrade", "--command", "stop new {node}")
        assert re.search(r"metadata.version .* can be raised", result.stdout)
        goes_on(cluster, work, "restart", "--command", "kill old {node}")
        goes_on(cluster, work, "upgrade", "--command", "kill new {node}")
        result = goes_on(cluster, work, "upgrade", "--finalize")
        assert re.search(r"metadata.version .* raised", result.stdout)
        finish(work)
    assert [program for program, _ in changed] == ["new"] * 3 + ["old"] * 3 + ["new"] * 3
    verdicts = judge(cluster, work)
    assert not [f"{name}: {each}" for name, each in verdicts.items() if each.problems]
    for topic in (RECORDS, TRANSACTIONS):
        cluster.await_in_sync([topic])
        check_bytes_identical(cluster, topic)
    print(*(f"{name}: {each}" for name, each in verdicts.items()), sep="\n")


def goes_on(cluster: Cluster, work: Clients, verb: str, *arguments: str) -> Result:
    """Run a command, see that it ends well, and that every client goes on afterwards; return its result."""
    words = ["cluster", verb, *arguments, "-b", cluster.bootstrap_servers]
    result = CliRunner().invoke(command_group(), words, prog_name="barnabas")
    assert result.exit_code == 0, f"{result.stdout}{result.stderr}{result.exception!r}"
    print(result.stdout, result.stderr)
    before = progress(work)
    wait_for("every client goes on", lambda: all(now > then for then, now in zip(before, progress(work), strict=True)))
    return result


def package_of(kind: type[NodeProcess]) -> str:
    """Return the folder of the package that nodes of a kind run."""
    command = kind(Path(), 1, ("broker",)).start_command()
    words = [*command[: command.index("-m")], "-c", "import barnabas; print(*barnabas.__path__)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def progress(work: Clients) -> list[int]:
    return [
        len(work.probe.acknowledged),
        len(work.transactor.committed),
        *(len(member.events) for member in work.members),
    ]
