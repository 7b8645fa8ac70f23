"""A worker of Kafka Connect in a JVM of its own, its settings, and the connectors of files."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_kafka

TEXT = "org.apache.kafka.connect.storage.StringConverter"
SECONDS = 240


class Worker:
    """One Connect worker in a JVM of its own."""

    def __init__(self, folder: Path, name: str, main_class: str, *files: tuple[str, dict[str, str]]) -> None:
        self.folder = folder
        self.port = apache_kafka.free_port()
        paths = []
        for file, properties in files:
            path = folder / f"{name}-{file}.properties"
            given = {**properties, "listeners": f"http://127.0.0.1:{self.port}"} if file == "worker" else properties
            path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
            paths.append(str(path))
        self.log = folder / f"{name}.log"
        jars = apache_kafka.library("connect", "connect-runtime", "connect-file")
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, f"org.apache.kafka.connect.cli.{main_class}", *paths], stdout=log, stderr=log
            )

    def ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def tell(self, method: str, path: str, body: object = None) -> Any:
        """A request that changes something, sent until the worker takes it: it answers 409 (400 of an old
        version of the configuration) during a rebalance, and 500 when one lasts. All are such that twice is as good as once."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.ask(method, path, body)
            except urllib.error.HTTPError as error:
                if method == "DELETE" and error.code == 404:
                    return None  # It was taken the first time, whatever the answer said.
                if error.code not in (400, 409, 500) or time.monotonic() > deadline:
                    raise AssertionError(f"{error} {error.read()!r}\n{self.log.read_text()[-3000:]}") from None
            time.sleep(0.3)

    def when(self, path: str, wanted: Callable[[Any], bool]) -> Any:
        """What a GET answers, once it is what is wanted."""
        found: object = None
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                found = self.ask("GET", path)
                if wanted(found):
                    return found
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                found = error
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.3)
        raise AssertionError(f"{found}\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def worker_settings(bootstrap: str, **more: str) -> dict[str, str]:
    common = {
        "bootstrap.servers": bootstrap,
        "key.converter": TEXT,
        "value.converter": TEXT,
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "only_scan",
        # A sink's first offsets may be looked for before its topic is there.
        "consumer.metadata.max.age.ms": "1000",
    }
    return {**common, **{name.replace("_", "."): value for name, value in more.items()}}


def source(path: Path) -> dict[str, str]:
    created = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": "lines", **created}


def sink(path: Path) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(path), "topics": "lines"}


def distributed(bootstrap: str, **more: str) -> dict[str, str]:
    return worker_settings(
        bootstrap,
        group_id="connect-cluster",
        config_storage_topic="connect-configs",
        offset_storage_topic="connect-offsets",
        status_storage_topic="connect-status",
        config_storage_replication_factor="1",
        offset_storage_replication_factor="1",
        status_storage_replication_factor="1",
        offset_storage_partitions="3",
        status_storage_partitions="2",
        scheduled_rebalance_max_delay_ms="0",
        session_timeout_ms="6000",
        heartbeat_interval_ms="1000",
        exactly_once_source_support="enabled",
        **more,
    )


def running(status: Any) -> bool:
    return status["connector"]["state"] == "RUNNING" and [task["state"] for task in status["tasks"]] == ["RUNNING"]
