"""The process that runs Spark's jobs (`spark_jobs`), seen from the bench: ask for a job, and learn what it cost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.spark.connector import connector_jars

from bench.process_cost import FamilyCost


class SparkProcess:
    """A Spark session with the connector's jars, in processes of its own; a context manager."""

    def __init__(self, servers: str, slots: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-spark-")
        self._log = Path(self._folder.name) / "stderr"
        jars = ",".join(map(str, connector_jars()))
        command = [sys.executable, "-m", "bench.spark_jobs", f"local[{slots}]", servers, self._folder.name, jars]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._answer()

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        """Run a job; returns its answer and `cpu`, the CPU seconds of driver, JVM and Python workers."""
        assert self._process.stdin is not None
        with FamilyCost(self._process.pid) as cost:
            self._process.stdin.write(json.dumps([job, arguments]) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        return {**answer, "cpu": cost.cpu}

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Spark's process ended: {self._log.read_text(errors='replace')[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()
