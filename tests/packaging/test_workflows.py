"""The workflows of GitHub: valid, minimal in what they may do, and made of the Makefile's words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from barnabas.version import VERSION
from tests.pages import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path for path in sorted((GITHUB / "workflows").glob("*.yml"))}
WORDS = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
SCHEMAS = {
    "github-workflows": [*WORKFLOWS.values()],
    "dependabot": [GITHUB / "dependabot.yml"],
    "github-issue-forms": [GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "wish.yml"],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
}


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


def jobs() -> dict[str, dict[str, Any]]:
    return {f"{name}/{job}": body for name, path in WORKFLOWS.items() for job, body in load(path)["jobs"].items()}


def commands(job: dict[str, Any]) -> list[str]:
    """Return each line that a job runs, once for each value of its matrix."""
    lines = [line.strip() for step in job["steps"] for line in step.get("run", "").splitlines()]
    for name, values in job.get("strategy", {}).get("matrix", {}).items():
        word = f"${{{{ matrix.{name} }}}}"
        lines = [line.replace(word, value) for line in lines for value in (values if word in line else [""])]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_file_follows_githubs_schema(schema: str) -> None:
    program = Path(sys.executable).parent / "check-jsonschema"
    command = [str(program), "--builtin-schema", f"vendor.{schema}", *map(str, SCHEMAS[schema])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_form_is_forgotten() -> None:
    assert {path for paths in SCHEMAS.values() for path in paths} == set(GITHUB.rglob("*.yml"))


@pytest.mark.parametrize("job", jobs())
def test_what_is_made_is_a_word_of_the_makefile(job: str) -> None:
    made = [line.split()[1] for line in commands(jobs()[job]) if line.startswith("make ")]
    assert set(made) <= WORDS
    assert made or job in ("release/pypi", "release/github")


def test_the_gate_is_quick_and_the_suite_waits_for_it() -> None:
    assert commands(jobs()["ci/quick"]) == ["make quick"]
    assert jobs()["ci/suite"]["needs"] == "quick"
    assert set(commands(jobs()["ci/suite"])) == {"make test"}


def test_the_pythons_are_those_that_the_package_claims() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: "
    claimed = [each.removeprefix(prefix) for each in project["classifiers"] if each.startswith(prefix)]
    assert jobs()["ci/suite"]["strategy"]["matrix"]["python"] == claimed
    assert f">={claimed[0]}" == project["requires-python"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"Python {', '.join(claimed[:-1])} and {claimed[-1]}" in readme


def test_actions_are_pinned_to_a_commit_that_has_a_version() -> None:
    used = [
        line.partition("uses:")[2].strip()
        for path in WORKFLOWS.values()
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(used) > 10
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    pins = {each.partition("@")[0]: each for each in used}
    assert set(used) == set(pins.values()), "one action, one version"


def test_no_job_may_do_more_than_it_needs() -> None:
    assert [load(path)["permissions"] for path in WORKFLOWS.values()] == [{"contents": "read"}] * len(WORKFLOWS)
    more = {name: job["permissions"] for name, job in jobs().items() if "permissions" in job}
    assert more == {"release/pypi": {"id-token": "write"}, "release/github": {"contents": "write"}}
    kept = [step for job in jobs().values() for step in job["steps"] if "actions/checkout@" in step.get("uses", "")]
    assert {step["with"]["persist-credentials"] for step in kept} == {False}


def test_every_job_ends() -> None:
    assert [name for name, job in jobs().items() if "timeout-minutes" not in job] == []


@pytest.mark.parametrize(
    ("tag", "written", "fragments", "passes"),
    [
        (f"v{VERSION}", f"## {VERSION}\n", [], True),
        (f"v{VERSION}", f"## {VERSION} (2026-11-24)\n", [], True),
        (f"v{VERSION}.1", f"## {VERSION}.1\n", [], False),
        (f"v{VERSION}", f"## {VERSION}.1\n", [], False),
        (f"v{VERSION}", f"## {VERSION}\n", ["+one.misc.md"], False),
    ],
)
def test_a_release_needs_its_version_and_its_changelog(
    tag: str, written: str, fragments: list[str], passes: bool, tmp_path: Path
) -> None:
    (step,) = [step for step in jobs()["release/build"]["steps"] if step.get("name", "").startswith("the tag")]
    version = tmp_path / "src" / "barnabas" / "version.py"
    version.parent.mkdir(parents=True)
    version.write_text((ROOT / "src" / "barnabas" / "version.py").read_text())
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{written}")
    (tmp_path / "changes").mkdir()
    for name in fragments:
        (tmp_path / "changes" / name).touch()
    environment = os.environ | {"GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=False)
    assert (done.returncode == 0) == passes


def test_a_tag_is_published_without_a_secret() -> None:
    text = WORKFLOWS["release"].read_text()
    assert "secrets." not in text
    assert "uv publish --trusted-publishing always" in commands(jobs()["release/pypi"])


def test_the_changelog_has_a_page_for_the_version() -> None:
    assert re.search(rf"^## {re.escape(VERSION)}( |$)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_hooks_before_a_commit_run_what_make_check_runs() -> None:
    """From the environment of `make install`, so that no version of a tool is written twice."""
    check = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    repositories = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        program, *words = hook["entry"].split()
        assert program.startswith(".venv/bin/")
        assert f"$(BIN)/{program.removeprefix('.venv/bin/')} {words[0]}" in check, hook["id"]
        assert (Path(sys.executable).parent / Path(program).name).exists()
