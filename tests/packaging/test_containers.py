"""Dockerfile and compose.yaml: they are linted, and what they would run in a container runs without one."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from barnabas.server.config import BrokerConfig
from barnabas.server.config_sources import ConfigSources
from tests.pages import ROOT
from tests.server.process import ENVIRONMENT

BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
COMPOSE = YAML(typ="safe").load(ROOT / "compose.yaml")


def instructions(name: str) -> list[str]:
    """Return the arguments of each instruction of the last stage."""
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    return [found.strip() for found in re.findall(rf"^{name} (.*)$", last, re.MULTILINE)]


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def lint(program: str, *arguments: str) -> None:
    done = subprocess.run([str(BIN / program), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_is_lint_free() -> None:
    lint("hadolint", "Dockerfile")


def test_compose_follows_its_specification() -> None:
    lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
@pytest.mark.skipif(shutil.which("uv", path=str(BIN)) is None, reason="uv is not installed")
def test_the_wheel_is_made_of_what_is_copied(tmp_path: Path) -> None:
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        for name in line.split()[:-1]:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (tmp_path / name).parent.mkdir(exist_ok=True)
                shutil.copy(source, tmp_path / name)
    command = [str(BIN / "uv"), "build", "-q", "--wheel", "--out-dir", str(tmp_path / "wheels"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.name.partition("-")[0] for path in (tmp_path / "wheels").glob("*.whl")] == ["barnabas"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """What the image runs with the image's variables, on free ports and another directory; the process and its HTTP port."""
    log = tmp_path / "log"
    environment = image_environment() | {"KAFKA_LOG_DIRS": str(tmp_path / "data")}
    for name in ("KAFKA_LISTENERS", "KAFKA_BARNABAS_METRICS_LISTEN"):
        environment[name] = re.sub(r"(0\.0\.0\.0)?:\d+$", "127.0.0.1:0", environment[name])
    (entrypoint,) = map(json.loads, instructions("ENTRYPOINT"))
    (arguments,) = map(json.loads, instructions("CMD"))
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [str(BIN / entrypoint[0]), *arguments],
            env=ENVIRONMENT | environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        assert "barnabas ready on" in process.stdout.readline(), log.read_text()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", log.read_text())
        assert found is not None
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()


def health(port: int) -> int:
    command = json.loads(DOCKERFILE.partition("HEALTHCHECK")[2].partition("CMD ")[2].partition("\n")[0])
    words = [word.replace("127.0.0.1:9308", f"127.0.0.1:{port}") for word in command]
    assert words != command
    return subprocess.run([sys.executable, *words[1:]], capture_output=True, check=False).returncode


def test_the_image_starts_is_healthy_and_stops(started: tuple[subprocess.Popen[str], int]) -> None:
    process, port = started
    # Ready on the Kafka port comes a moment before the broker is unfenced; Docker asks again, too.
    deadline = time.monotonic() + 60
    while health(port) != 0:
        assert time.monotonic() < deadline
    (stop,) = instructions("STOPSIGNAL")
    process.send_signal(signal.Signals[stop])
    assert process.wait(60) == 0
    assert health(port) != 0


def test_clients_inside_and_outside_get_an_address_that_they_reach() -> None:
    service = COMPOSE["services"]["barnabas"]
    sources = ConfigSources(None, image_environment() | service["environment"])
    config = BrokerConfig.from_properties(sources.properties)
    assert not config.unknown
    listeners = dict(each.split("://") for each in sources.properties["listeners"].split(","))
    advertised = dict(each.split("://") for each in sources.properties["advertised.listeners"].split(","))
    outer = {port.rpartition(":")[2]: port.rpartition(":")[0] for port in service["ports"]}
    assert advertised["INTERNAL"] == f"barnabas{listeners['INTERNAL']}"
    assert outer[listeners["EXTERNAL"][1:]] == advertised["EXTERNAL"].replace("localhost", "127.0.0.1")
    assert all(host == "127.0.0.1" for host in (port.split(":")[0] for port in service["ports"]))
