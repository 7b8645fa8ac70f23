"""The bill of materials beside the wheel: of this release, with what its extras bring, and nothing of development."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from barnabas.version import VERSION
from tests.pages import ROOT

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


@pytest.mark.slow
@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_the_bill_has_what_the_extras_bring(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "write_sbom.py"), "--output-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    bill = json.loads((tmp_path / f"barnabas-{VERSION}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    own = bill["metadata"]["component"]
    assert (own["name"], own["version"], own["purl"]) == ("barnabas", VERSION, f"pkg:pypi/barnabas@{VERSION}")
    versions = {each["name"]: each["version"] for each in bill["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {
        re.split(r"[\[<>=; ]", each)[0]
        for extra in project["project"]["optional-dependencies"].values()
        for each in extra
    }
    assert extras - {"barnabas"} <= versions.keys()
    locked = {
        each["name"]: each["version"]
        for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
        if "version" in each
    }
    assert all(locked[name] == version for name, version in versions.items())
    assert not versions.keys() & {"pytest", "mypy", "ruff"}
