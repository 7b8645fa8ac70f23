"""The wheel, built and installed into an empty environment: what it holds, and that the README's samples run there.

uv builds and installs, from its cache where it can. The versions are those of the lock file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from barnabas.version import VERSION
from tests.packaging.wheel_files import packaged_files
from tests.pages import ROOT, blocks, run_pytest

PROJECT = "https://github.com/barnabas-log/barnabas"
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("wheel"),
    pytest.mark.skipif(UV is None, reason="uv is not installed"),
]


def uv(*words: str | Path) -> str:
    assert UV is not None
    done = subprocess.run([UV, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source package, as `make dist` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "-q", "--out-dir", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, what it requires, its extra `cli`, and pytest."""
    folder = tmp_path_factory.mktemp("environment")
    uv("venv", "-q", "--python", sys.executable, folder / "env")
    (folder / "locked.txt").write_text(
        uv("export", "-q", "--frozen", "--all-groups", "--no-emit-project", "--no-hashes")
    )
    interpreter = folder / "env" / "bin" / "python"
    uv(
        "pip",
        "install",
        "-q",
        "--python",
        interpreter,
        "--constraints",
        folder / "locked.txt",
        f"{wheel}[cli]",
        "pytest",
    )
    return interpreter


def run(python: Path, *words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment, away from the source tree."""
    return subprocess.run(
        [str(python.parent / words[0]), *words[1:]],
        cwd=cwd,
        env={"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(cwd), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {
        "barnabas",
        "pyspark_barnabas",
        f"{'-'.join(wheel.name.split('-')[:2])}.dist-info",
    }
    packages = {name for name in names if ".dist-info" not in name}
    assert packages == packaged_files() | {"barnabas/commit.txt"}
    assert {"barnabas/py.typed", "barnabas/protocol/schema.json", "barnabas/settings.tsv"} <= packages
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE"}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def test_an_indexs_page_has_no_link_into_the_checkout(wheel: Path) -> None:
    page = metadata(wheel)
    links = re.findall(r"\]\(([^)]*)\)", page.get_payload())
    here = f"{PROJECT}/blob/v{VERSION}/"
    own = [link.removeprefix(here).partition("#")[0] for link in links if link.startswith(here)]
    assert [link for link in links if not link.startswith("https://")] == []
    assert [name for name in own if not (ROOT / name).exists()] == []
    assert len(own) == len(re.findall(r"\]\((?!https:)", (ROOT / "README.md").read_text()))


def test_the_package_says_who_made_it_and_where_it_lives(wheel: Path) -> None:
    page = metadata(wheel)
    addresses = dict(each.split(", ", 1) for each in page.get_all("Project-URL", []))
    assert addresses.keys() == {"Documentation", "Source", "Issues", "Changelog"}
    assert addresses["Source"] == PROJECT
    assert all(address.startswith(PROJECT) for address in addresses.values())
    own = [address.partition("/blob/main/")[2] for address in addresses.values() if "/blob/main/" in address]
    assert [name for name in own if not (ROOT / name).exists()] == []
    assert page["Author"] == "the authors of barnabas"
    assert page["Version"] == VERSION


def test_the_wheel_alone_brings_no_kafka_client_in_c(wheel: Path) -> None:
    (name,) = (each for each in zipfile.ZipFile(wheel).namelist() if each.endswith(".dist-info/METADATA"))
    lines = zipfile.ZipFile(wheel).read(name).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    names = {re.match(r"Requires-Dist: ([a-z0-9-]+)", line)[1] for line in required}  # type: ignore[index]
    assert names == {"click", "cramjam", "crc32c", "google-re2", "rich", "uvloop"}


def test_the_source_package_holds_what_the_wheel_is_built_from(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    top = {name.partition("/")[0] for name in names}
    assert top <= {
        "src", "docs", "examples", "packaging", "pipelines",
        "README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "pyproject.toml", "PKG-INFO", ".gitignore",
    }  # fmt: skip
    assert {"src/barnabas/settings.tsv", "src/barnabas/commit.txt", "packaging/commit_hook.py"} <= names


def test_the_readmes_test_passes(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(next(text for text in blocks("README.md") if "def test_" in text))
    done = run_pytest(tmp_path, "-q", python=python)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_readmes_broker_starts(python: Path, tmp_path: Path) -> None:
    code = next(text for text in blocks("README.md") if "barnabas.Broker()" in text)
    done = run(python, "python", "-c", code, cwd=tmp_path)
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout), done.stderr


@pytest.fixture
def address(python: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a broker that the environment's command runs."""
    words = [str(python.parent / "barnabas"), "start", "--data-dir", "data", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        ready = next((line for line in broker.stdout if "ready on" in line), "")
        try:
            yield ready.split()[-1]
        finally:
            broker.terminate()


def test_the_readmes_commands_run(python: Path, address: str, tmp_path: Path) -> None:
    text = next(text for text in blocks("README.md", "sh") if "barnabas topic create orders" in text)
    commands = [line for line in text.splitlines() if line and not line.startswith("barnabas start")]
    script = "\n".join(commands)
    done = run(python, "/bin/sh", "-ec", script, cwd=tmp_path, BARNABAS_BOOTSTRAP_SERVERS=address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "alice = one teapot" in done.stdout


def test_the_demo_says_what_to_install(python: Path, tmp_path: Path) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    (tmp_path / "java").chmod(0o755)
    done = run(python, "barnabas", "demo", cwd=tmp_path, PATH=f"{tmp_path}:{python.parent}:/usr/bin:/bin")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "the demo needs matplotlib (" in said
    assert re.search(r'python -m pip install "confluent-kafka>=\S+" "matplotlib>=\S+" .*"pyspark>=\S+"', said), said
    assert "barnabas[" not in said


def test_types_and_version_are_there(python: Path, tmp_path: Path) -> None:
    shown = run(python, "barnabas", "--version", cwd=tmp_path).stdout
    assert re.fullmatch(rf"barnabas, version {re.escape(VERSION)} \(commit [0-9a-f]{{10}}(-dirty)?\)\n", shown)
    code = "import barnabas, pathlib; print((pathlib.Path(barnabas.__file__).parent / 'py.typed').exists(), barnabas.__file__)"
    there, where = run(python, "python", "-c", code, cwd=tmp_path).stdout.split()
    assert there == "True"
    assert "site-packages" in where
