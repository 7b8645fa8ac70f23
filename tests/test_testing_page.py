"""Every sample of docs/testing.md is a test file; they all pass, on two workers of pytest-xdist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import blocks, run_pytest, write_files

PAGES = ("docs/testing.md", "docs/from-testcontainers.md")
FAILURES = "docs/testing-failures.md"
SIMULATION = "docs/simulation.md"


@pytest.mark.slow
def test_the_samples_pass_in_parallel(tmp_path: Path) -> None:
    they_pass([name for page in PAGES for name in write_files(page, tmp_path)], tmp_path, "-n", "2")


@pytest.mark.slow
@pytest.mark.long
def test_the_samples_with_failures_pass(tmp_path: Path) -> None:
    they_pass(write_files(FAILURES, tmp_path), tmp_path)


@pytest.mark.slow
def test_the_samples_in_virtual_time_pass(tmp_path: Path) -> None:
    they_pass(write_files(SIMULATION, tmp_path), tmp_path)


def they_pass(names: list[str], folder: Path, *options: str) -> None:
    assert len(names) == len(set(names))
    tests = sum(len(re.findall(r"^(?:async )?def test_", (folder / name).read_text(), re.MULTILINE)) for name in names)
    done = run_pytest(folder, "-q", *options)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout + done.stderr
    assert int(passed[1]) >= tests
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_sample_is_run() -> None:
    for page in (*PAGES, FAILURES, SIMULATION):
        for text in blocks(page):
            assert re.match(r"# (test_\w+\.py|conftest\.py|with testcontainers)\n", text), text
