"""A Prometheus of this machine, with the project's rules, that scrapes what a test names."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml  # type: ignore[import-untyped]

from tests.cluster.waiting import wait_for

FOLDER = Path(__file__).parents[2] / "packaging" / "monitoring"
INTERVAL = "500ms"
ANSWER_SECONDS = 10
Target = tuple[str, str, Mapping[str, str]]
"""The job, HOST:PORT, and more labels."""


class Prometheus:
    """A process over the configuration that the project ships, with other targets and shorter times.

    Args:
        fast: this is for how long every alarm waits.
    """

    def __init__(self, folder: Path, targets: Sequence[Target], *, fast: str = "1s") -> None:
        rules = re.sub(r"\bfor: \d+[mh]\b", f"for: {fast}", (FOLDER / "alarms.yml").read_text())
        (folder / "alarms.yml").write_text(rules)
        configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
        configuration["global"] = {
            "scrape_interval": INTERVAL,
            "scrape_timeout": INTERVAL,
            "evaluation_interval": INTERVAL,
        }
        for job in configuration["scrape_configs"]:
            job["static_configs"] = [
                {"targets": [where], "labels": dict(labels)}
                for name, where, labels in targets
                if name == job["job_name"]
            ]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        with open(folder / "prometheus.log", "wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address={self.address}",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of an expression; raises OSError while Prometheus starts."""
        with urlopen(
            f"http://{self.address}/api/v1/query?{urlencode({'query': expression})}", timeout=ANSWER_SECONDS
        ) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result

    def firing(self) -> set[str]:
        """Return the names of the alarms that ring."""
        return {each["metric"]["alertname"] for each in self.query('ALERTS{alertstate="firing"}')}

    def until_all_have_data(self, expressions: Sequence[str], seconds: float) -> None:
        """Wait until each expression has had a sample that is a number once: Grafana shows nothing for another."""
        left = dict.fromkeys(expressions)

        def ask() -> bool:
            for expression in tuple(left):
                if any(each["value"][1] != "NaN" for each in self.query(expression)):
                    del left[expression]
            return not left

        try:
            wait_for("every query has data", ask, seconds)
        except AssertionError as error:
            raise AssertionError(f"without data: {list(left)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
