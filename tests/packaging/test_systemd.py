"""The systemd unit: systemd finds no fault in it, and what it runs starts with the settings beside it."""

from __future__ import annotations

import configparser
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.process.process import ENVIRONMENT

FOLDER = ROOT / "packaging"
UNIT = (FOLDER / "barnabas.service").read_text()
COMMAND = Path(sys.executable).with_name("barnabas")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    unit = tmp_path / "barnabas.service"
    unit.write_text(UNIT.replace("/opt/barnabas/bin/barnabas", str(COMMAND)))
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
