"""Every sample of docs/testing.md is a test file; they all pass, on two workers of pytest-xdist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import blocks, run_pytest, write_files

PAGES = ("docs/testing.md", "docs/from-testcontainers.md")


@pytest.mark.slow
def test_the_samples_pass_in_parallel(tmp_path: Path) -> None:
    names = [name for page in PAGES for name in write_files(page, tmp_path)]
    assert len(names) == len(set(names))
    tests = sum(
        len(re.findall(r"^(?:async )?def test_", (tmp_path / name).read_text(), re.MULTILINE)) for name in names
    )
    done = run_pytest(tmp_path, "-q", "-n", "2")
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout + done.stderr
    assert int(passed[1]) >= tests
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_sample_is_run() -> None:
    for page in PAGES:
        for text in blocks(page):
            assert re.match(r"# (test_\w+\.py|conftest\.py|with testcontainers)\n", text), text
