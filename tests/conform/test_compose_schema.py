"""The compose files are valid by the schema of the Compose specification, which refuses a key that it does not have.

The schema comes with the package docker-compose, Docker's own program before it was written in Go.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
PACKAGE = "docker-compose==1.29.2"
FILES = ("compose.yaml", "packaging/monitoring/compose.yaml")
VALIDATE = """
import json, sys, yaml, jsonschema
jsonschema.validate(yaml.safe_load(open(sys.argv[1])), json.load(open(sys.argv[2])))
"""

pytestmark = [
    pytest.mark.conform,
    pytest.mark.skipif(UV is None, reason="uv is not installed, which fetches the schema"),
]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compose")
    subprocess.run([str(UV), "pip", "install", "-q", "--no-deps", "--target", str(folder), PACKAGE], check=True)
    return folder / "compose" / "config" / "compose_spec.json"


def checked(file: Path, schema: Path) -> str:
    """Return what is wrong with a file; empty if nothing is."""
    command = [str(UV), "run", "-q", "--no-project", "--isolated", "--with", "jsonschema==4.23.0", "--with", "pyyaml"]
    done = subprocess.run(
        [*command, "python", "-c", VALIDATE, str(file), str(schema)], capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_compose_file_is_valid(name: str, schema: Path) -> None:
    assert checked(ROOT / name, schema) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("network_mode:", "networkmode:"),
        ("restart: unless", "restarts: unless"),
        ("depends_on: [", "depends_on: 3 # ["),
    ],
)
def test_the_check_finds_a_fault(right: str, wrong: str, schema: Path, tmp_path: Path) -> None:
    text = (ROOT / FILES[1]).read_text()
    assert right in text
    file = tmp_path / "compose.yaml"
    file.write_text(text.replace(right, wrong))
    assert "ValidationError" in checked(file, schema)
