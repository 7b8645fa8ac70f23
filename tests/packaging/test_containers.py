"""Dockerfile and compose.yaml: they are linted, and what they would run in a container runs without one."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from ruamel.yaml import YAML

from barnabas.config.config import BrokerConfig
from barnabas.config.sources import ConfigSources
from tests.packaging.docker_context import copies, copy_into, is_ignored
from tests.packaging.wheel_files import packaged_files
from tests.pages import ROOT
from tests.process.process import ENVIRONMENT

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


def test_docker_is_sent_only_what_is_copied() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sent == {name for names, _ in copies(DOCKERFILE) for name in names}


def test_the_image_has_the_extra_of_the_command_line() -> None:
    (built,) = re.findall(r"pip wheel .* \"\.\[(.+)\]\"", DOCKERFILE)
    (installed,) = re.findall(r"--find-links=/wheels \"barnabas\[(.+)\]\"", DOCKERFILE)
    assert built == installed == "cli"


def test_rules_of_what_is_sent_to_docker() -> None:
    rules = ["*", "!a.txt", "!src", "!pipelines/shop", "**/__pycache__"]
    sent = ["a.txt", "src/x.py", "src/deep/y.py", "pipelines/shop/z.py"]
    ignored = ["b.txt", "pipelines/other/z.py", "pipelines/z.py", "src/deep/__pycache__/y.pyc", "docs/src/x.md"]
    assert [name for name in [*sent, *ignored] if is_ignored(rules, PurePosixPath(name))] == ignored


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
@pytest.mark.skipif(shutil.which("uv", path=str(BIN)) is None, reason="uv is not installed")
def test_the_images_wheel_holds_what_every_wheel_holds(tmp_path: Path) -> None:
    """The demo's project too, which lies outside `src`."""
    copy_into(ROOT, tmp_path)
    command = [str(BIN / "uv"), "build", "-q", "--wheel", "--out-dir", str(tmp_path / "wheels"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").glob("barnabas-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == packaged_files()
    assert "barnabas/demo/project/spark-pipeline.yml" in names


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """What the image runs with the image's variables, on free ports and another directory; the process and its HTTP port."""
    log = tmp_path / "log"
    environment = image_environment() | {"KAFKA_LOG_DIRS": str(tmp_path / "data")}
    for name in ("KAFKA_LISTENERS", "KAFKA_BARNABAS_METRICS_LISTEN"):
        environment[name] = re.sub(r"(127\.0\.0\.1)?:\d+$", "127.0.0.1:0", environment[name])
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
    assert config.bool_value("barnabas.insecure")
    listeners = dict(each.split("://") for each in sources.properties["listeners"].split(","))
    advertised = dict(each.split("://") for each in sources.properties["advertised.listeners"].split(","))
    outer = {port.rpartition(":")[2]: port.rpartition(":")[0] for port in service["ports"]}
    assert advertised["INTERNAL"] == f"barnabas{listeners['INTERNAL']}"
    assert outer[listeners["EXTERNAL"][1:]] == advertised["EXTERNAL"].replace("localhost", "127.0.0.1")
    assert all(host == "127.0.0.1" for host in (port.split(":")[0] for port in service["ports"]))


def test_the_image_itself_is_not_insecure() -> None:
    """Whoever starts it says so, or gives its listeners a login and an authorizer."""
    config = BrokerConfig.from_properties(ConfigSources(None, image_environment()).properties)
    assert not config.bool_value("barnabas.insecure")
    assert config.str_value("barnabas.metrics.listen").startswith("127.0.0.1:")
