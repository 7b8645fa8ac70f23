"""The version is written once; the commit comes from the build, from git, or is not known."""

from __future__ import annotations

import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.main import command_group
from barnabas.version import VERSION, commit

ROOT = Path(__file__).parent.parent


def test_the_version_is_written_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/barnabas/version.py"
    assert VERSION == barnabas.__version__ == version("barnabas")
    written = [path for path in (ROOT / "src").rglob("*.py") if f'"{VERSION}"' in path.read_text()]
    assert written == [ROOT / "src" / "barnabas" / "version.py"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a checkout's form, in which the version's module seems to lie; returned is the package's folder."""
    package = tmp_path / "src" / "barnabas"
    package.mkdir(parents=True)
    monkeypatch.setattr("barnabas.version._HERE", package / "version.py")
    return package


def test_a_wheel_knows_what_the_build_wrote(place: Path) -> None:
    (place / "commit.txt").write_text("0123456789\n")
    assert commit() == "0123456789"


def test_a_copy_of_the_files_knows_no_commit(place: Path) -> None:
    assert commit() is None


def test_a_checkout_asks_git(place: Path) -> None:
    root = place.parent.parent

    def git(*words: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *author, *words], cwd=root, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    assert commit() is None, "nothing is committed yet"
    (root / "file").write_text("one")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    git("tag", "v7")
    head = git("rev-parse", "HEAD")
    assert commit() == head[:10]
    (root / "file").write_text("two")
    assert commit() == f"{head[:10]}-dirty"


def test_a_machine_without_git_knows_no_commit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.parent.parent / ".git").mkdir()
    monkeypatch.setenv("PATH", str(place))
    assert commit() is None


@pytest.mark.parametrize(("known", "said"), [("0123456789", " (commit 0123456789)"), (None, "")])
def test_the_command_says_both(known: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.main.commit", lambda: known)
    shown = CliRunner().invoke(command_group(), ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"barnabas, version {VERSION}{said}\n")
