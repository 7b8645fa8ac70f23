"""Kafka Connect: a worker whose connectors copy the lines of a growing file through a topic into another file.

The source is exactly once, so the topic must have each line once, in order. The sink is at least once: after a rebalance it may write
lines again, but leaves none out. A task that fails stays so in Connect until its operator restarts it; this one does, and counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.client.properties import read_properties
from tests.cluster.cluster import Cluster
from tests.cluster.exchange_judge import Verdict
from tests.cluster.meanwhile.companion import Companion
from tests.cluster.records import read_partition
from tests.cluster.topics import SAFE, create_topic
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker
from tests.conform import connect_worker

TOPIC = "lines"
LINES = "lines given to Connect"
EVERY_SECONDS = 0.05
IN, OUT = "in", "out"


def judge_lines(given: Sequence[str], topic: Sequence[str], written: Sequence[str]) -> Verdict:
    """Judge what became of the lines of a file.

    Args:
        given: all lines of the first file.
        topic: what a reader of committed records gets.
        written: all lines of the last file.
    """
    verdict = Verdict({LINES: len(given), "lines in the topic": len(topic), "lines written": len(written)})
    first = list(dict.fromkeys(written))
    verdict.counted["written again by the sink"] = len(written) - len(first)
    verdict.found("lost on the way to the topic", sorted(set(given) - set(topic)))
    verdict.found("twice in the topic", [each for each in dict.fromkeys(topic) if topic.count(each) > 1])
    verdict.found("lost on the way to the file", sorted(set(topic) - set(written)))
    in_order = [each for each in given if each in set(topic)]
    verdict.found("out of order", [] if list(dict.fromkeys(topic)) == in_order and first == in_order else ["the lines"])
    verdict.found("empty checks", [] if given else ["no line was given"])
    return verdict


class Lines(Worker):
    """Appends a line to a file again and again."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.count = 0

    def _run(self) -> None:
        with self.path.open("a") as file:
            while not self._stopping.wait(EVERY_SECONDS):
                file.write(f"line {self.count}\n")
                file.flush()
                self.count += 1


class Connect(Companion):
    """One distributed worker; it logs in as an administrator."""

    name = "Connect"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._cluster, self._folder = cluster, folder
        self._lines = Lines(folder / "given.txt")
        self._written = folder / "written.txt"
        self._worker: connect_worker.Worker | None = None
        self._restarts = 0

    def begin(self) -> None:
        create_topic(self._cluster, TOPIC, [sorted(each.node_id for each in self._cluster.brokers)[:3]], SAFE)
        self._lines.path.touch()
        self._worker = worker = connect_worker.Worker(
            self._folder, "connect", "ConnectDistributed", ("worker", self._settings())
        )
        worker.when("/connectors", lambda connectors: connectors == [])
        worker.tell("PUT", f"/connectors/{IN}/config", connect_worker.source(self._lines.path))
        worker.tell("PUT", f"/connectors/{OUT}/config", connect_worker.sink(self._written))
        for name in (IN, OUT):
            worker.when(f"/connectors/{name}/status", connect_worker.running)
        self._lines.__enter__()
        self.await_progress()

    def await_progress(self) -> None:
        given = self._lines.count
        wait_for("Connect writes the lines", lambda: self._has_written(given + 1))

    def finish(self, ends: Sequence[int]) -> Verdict:
        self._lines.__exit__(None)
        wait_for("Connect has written all lines", lambda: self._has_written(self._lines.count))
        self.close()
        found = read_partition(self._cluster.bootstrap_servers, TOPIC, 0, committed_only=True)
        given, written = self._lines.path.read_text().splitlines(), self._written.read_text().splitlines()
        verdict = judge_lines(given, [value.decode() for _, value in found], written)
        verdict.counted["tasks restarted by the operator"] = self._restarts
        return verdict

    def close(self) -> None:
        if self._lines.is_working:
            self._lines.__exit__(None)
        if self._worker is not None:
            self._worker.close()

    def _settings(self) -> dict[str, str]:
        safe = {f"{each}.storage.replication.factor": "3" for each in ("config", "offset", "status")}
        security = {} if way_in.file is None else read_properties(str(way_in.file))
        logins = {
            f"{of}{name}": value for of in ("", "producer.", "consumer.", "admin.") for name, value in security.items()
        }
        return {**connect_worker.distributed(self._cluster.bootstrap_servers), **safe, **logins}

    def _has_written(self, count: int) -> bool:
        """Return whether so many different lines are written; restart what has failed."""
        if self._written.exists() and len(set(self._written.read_text().splitlines())) >= count:
            return True
        assert self._worker is not None
        assert self._worker.process.poll() is None, self._worker.log.read_text()[-3000:]
        # While it rebalances, it answers 404, 409 or nothing.
        with suppress(OSError):
            self._restart_failed(self._worker)
        return False

    def _restart_failed(self, worker: connect_worker.Worker) -> None:
        for name in (IN, OUT):
            status = worker.ask("GET", f"/connectors/{name}/status")
            if "FAILED" in (status["connector"]["state"], *(each["state"] for each in status["tasks"])):
                worker.ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
                self._restarts += 1
