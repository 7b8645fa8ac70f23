"""Each object of packaging/kubernetes is valid by the OpenAPI schema of Kubernetes: of the oldest release for it, and of a new one.

The schemas come with the package kubernetes-validate; its strict ones refuse a field that Kubernetes does not have.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.packaging.kubernetes import FOLDER, OVERLAYS, kustomized, needs_kubectl, of_the_page, with_brokers
from tests.pages import blocks

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
PACKAGE = "kubernetes-validate==1.37.0"
RELEASES = ("1.28", "1.37")
KUSTOMIZATIONS = ["base", "brokers", *(f"overlays/{name}" for name in OVERLAYS)]

pytestmark = [
    pytest.mark.conform,
    needs_kubectl,
    pytest.mark.skipif(UV is None, reason="uv is not installed, which fetches the schemas"),
]


def lines_of(release: str, file: Path) -> tuple[int, list[str]]:
    """Return the exit code of the check and its lines, one for each object."""
    command = [str(UV), "run", "-q", "--no-project", "--isolated", "--with", PACKAGE, "kubernetes-validate"]
    done = subprocess.run(
        [*command, "--strict", "-k", release, file.name], cwd=file.parent, capture_output=True, text=True, check=False
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


@cache
def of_the_folder(name: str) -> str:
    return kustomized(FOLDER / name)


def check(release: str, text: str, folder: Path) -> None:
    file = folder / "objects.yaml"
    file.write_text(text)
    code, lines = lines_of(release, file)
    assert code == 0, lines
    kinds = [kind.lower() for kind in re.findall(r"^kind: (\w+)$", text, re.MULTILINE)]
    assert kinds
    found = [re.findall(r"passed for resource (\w+)/", line) for line in lines]
    assert found == [[kind] for kind in kinds], lines


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_each_object_is_valid(name: str, release: str, tmp_path: Path) -> None:
    check(release, of_the_folder(name), tmp_path)


@pytest.mark.parametrize("number", range(len(blocks("docs/kubernetes.md", "yaml")) - 1))
def test_each_object_of_the_page_is_valid(number: int, tmp_path: Path) -> None:
    page = of_the_page(tmp_path / "page", number)
    check(RELEASES[0], kustomized(page), tmp_path)
    with_brokers(page, 2)
    check(RELEASES[0], kustomized(page), tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("terminationGracePeriodSeconds:", "terminationGracePeriod:"),
        ("readinessProbe:", "readynessProbe:"),
        ("maxUnavailable:", "maxUnavailabel:"),
        ("podManagementPolicy:", "podManagmentPolicy:"),
        ("publishNotReadyAddresses: true", "publishNotReadyAddresses: perhaps"),
        ("replicas: 3", "replicas: three"),
        ("initContainers:", "initContainer:"),
        ("volumeClaimTemplates:", "volumeClaims:"),
    ],
)
def test_the_check_finds_a_fault(right: str, wrong: str, tmp_path: Path) -> None:
    text = of_the_folder("overlays/open")
    assert text.count(right) == 1
    file = tmp_path / "objects.yaml"
    file.write_text(text.replace(right, wrong))
    code, lines = lines_of(RELEASES[-1], file)
    assert code != 0
    assert not all("passed" in line for line in lines), lines
