"""Registries that are killed while they write, over barnabas and over Apache Kafka: no id is lost, none is given twice.

Two processes serve one topic. Producers register schemas through one or the other, while each process is killed by SIGKILL and started
again, several times. Every id that was answered belongs to its schema afterwards, in a registry that has read the topic from its beginning.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conform.brokers import broker
from tests.registry.asking import Asking

pytestmark = [pytest.mark.conform, pytest.mark.long]

KILLS = 6
PATIENCE_SECONDS = 120


class RegistryProcess:
    """`barnabas registry`, on a free port that changes at each start."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "barnabas", "registry", "-b", self.bootstrap, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.asking = Asking(self.process.stdout.readline().split()[-1])

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Registering(threading.Thread):
    """Registers schemas, one after the other, through either registry, until it is told to end; each again until it has an id."""

    def __init__(self, name: str, registries: list[RegistryProcess]) -> None:
        super().__init__(daemon=True)
        self.prefix = name
        self.registries = registries
        self.ids: dict[str, int] = {}
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            name = f"{self.prefix}{len(self.ids)}"
            if (found := self._id_of(name)) is not None:
                self.ids[name] = found

    def _id_of(self, name: str) -> int | None:
        for each in self.registries:
            with contextlib.suppress(OSError, ValueError):
                status, text = each.asking.text(
                    "POST", f"/subjects/{name}/versions", {"schema": json.dumps(schema(name))}
                )
                if status == 200:
                    return int(json.loads(text)["id"])
        return None


def schema(name: str) -> dict[str, object]:
    return {"type": "fixed", "name": name, "size": 1}


@contextlib.contextmanager
def two_registries(bootstrap: str) -> Iterator[list[RegistryProcess]]:
    registries = [RegistryProcess(bootstrap), RegistryProcess(bootstrap)]
    try:
        yield registries
    finally:
        for each in registries:
            each.kill()


@pytest.mark.parametrize("name", ["barnabas", "apache-kafka"])
def test_no_id_is_lost_or_given_twice(name: str, tmp_path: Path) -> None:
    with broker(name, tmp_path) as running, two_registries(running.bootstrap_servers) as registries:
        producers = [Registering("A", registries), Registering("B", registries[::-1])]
        for each in producers:
            each.start()
        for kill in range(KILLS):
            await_more(producers)
            killed = registries[kill % 2]
            killed.kill()
            await_more(producers)
            killed.start()
        for each in producers:
            each.ends.set()
            each.join(PATIENCE_SECONDS)
        registries[0].kill()
        registries[0].start()
        given = {name: found for each in producers for name, found in each.ids.items()}
        assert len(set(given.values())) == len(given)
        for subject, found in given.items():
            text = json.dumps(schema(subject), separators=(",", ":"))
            assert registries[0].asking.get(f"/subjects/{subject}/versions/1") == {
                "subject": subject, "version": 1, "id": found, "schema": text,
            }  # fmt: skip
        subjects = registries[0].asking.get("/subjects")
        ids = [registries[0].asking.get(f"/subjects/{each}/versions/1")["id"] for each in subjects]
        assert sorted(ids) == list(range(1, len(subjects) + 1))


def await_more(producers: list[Registering]) -> None:
    """Return when schemas have been registered since."""
    wanted = sum(len(each.ids) for each in producers) + 4
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(len(each.ids) for each in producers) < wanted:
        assert time.monotonic() < deadline, "no registry gives ids"
        time.sleep(0.01)
