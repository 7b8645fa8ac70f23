"""The systemd units: systemd finds no fault in them, and what they run starts with the settings beside them."""

from __future__ import annotations

import configparser
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.process.process import ENVIRONMENT

FOLDER = ROOT / "packaging"
UNIT = (FOLDER / "barnabas.service").read_text()
COMMAND = Path(sys.executable).with_name("barnabas")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", ["barnabas.service", "barnabas@.service"])
def test_systemd_finds_no_fault(tmp_path: Path, name: str) -> None:
    unit = tmp_path / name
    unit.write_text((FOLDER / name).read_text().replace("/opt/barnabas/bin/barnabas", str(COMMAND)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_unit_runs_starts_and_stops(tmp_path: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(UNIT)
    program, *arguments = parser["Service"]["ExecStart"].split()
    assert program == "/opt/barnabas/bin/barnabas"
    settings = (FOLDER / "server.properties").read_text()
    assert f"log.dirs=/var/lib/{parser['Service']['StateDirectory']}\n" in settings
    settings = settings.replace("/var/lib/barnabas", str(tmp_path / "data"))
    settings = settings.replace(":9092", ":0").replace(":9308", ":0")
    file = tmp_path / "server.properties"
    file.write_text(settings)
    arguments = [str(file) if word == "/etc/barnabas/server.properties" else word for word in arguments]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [str(COMMAND), *arguments], stdout=subprocess.PIPE, stderr=log, text=True, env=ENVIRONMENT
        )
    try:
        assert process.stdout is not None
        assert "barnabas ready on 127.0.0.1:" in process.stdout.readline(), (tmp_path / "log").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "WARNING" not in (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def test_the_template_differs_in_what_names_the_node() -> None:
    template = (
        (FOLDER / "barnabas@.service").read_text().replace("barnabas/%i", "barnabas").replace("node-%i", "server")
    )
    different = set(template.splitlines()) ^ set(UNIT.splitlines())
    assert {line.partition("=")[0] for line in different if not line.startswith("#")} == {
        "Description",
        "EnvironmentFile",
    }


@pytest.mark.slow
def test_three_nodes_of_the_template_form_a_cluster(tmp_path: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string((FOLDER / "barnabas@.service").read_text())
    service = parser["Service"]
    template = (FOLDER / "node.properties").read_text()
    assert f"log.dirs=/var/lib/{service['StateDirectory'].replace('%i', 'NODE')}\n" in template
    with ExitStack() as held:
        ports = iter([_free_port(held) for _ in range(9)])
        chosen = {f"{kind}{node}": str(next(ports)) for kind in ("909", "919", "930") for node in "123"}
    processes = []
    with ExitStack() as stack:
        for node in "123":
            settings = template.replace("NODE", node).replace("/var/lib/barnabas", str(tmp_path))
            path = tmp_path / f"node-{node}.properties"
            path.write_text(re.sub(r"(?<=:)9[0-9]{3}", lambda found: chosen[found[0]], settings))
            words = service["ExecStart"].replace("/etc/barnabas/node-%i", str(path.with_suffix(""))).split()
            log = stack.enter_context((tmp_path / f"log-{node}").open("w"))
            process = subprocess.Popen(
                [str(COMMAND), *words[1:]],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=ENVIRONMENT | {"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"},
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        for node, process in zip("123", processes, strict=True):
            assert process.stdout is not None
            assert process.stdout.readline() == f"barnabas ready on 127.0.0.1:{chosen[f'909{node}']}\n"
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(60) for process in processes] == [0, 0, 0]


def _free_port(held: ExitStack) -> int:
    """Return a port that is free; all are held until the last is chosen, so no two are the same."""
    found = held.enter_context(socket.socket())
    found.bind(("127.0.0.1", 0))
    port: int = found.getsockname()[1]
    return port
