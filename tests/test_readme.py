"""What the README shows is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import blocks, run_pytest

README = Path(__file__).parent.parent / "README.md"


def block(word: str) -> str:
    return next(text for text in blocks("README.md") if word in text)


@pytest.mark.slow
def test_the_complete_test_passes(tmp_path: Path) -> None:
    code = block("def test_")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    (tmp_path / "test_shop.py").write_text(code)
    done = run_pytest(tmp_path, "-q")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_embedded_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("barnabas.Broker()")], capture_output=True, text=True, timeout=300, check=True
    )
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout)


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        if target != "docs/benchmarks.md":  # a run of `make bench` writes it
            assert (README.parent / target).exists(), target
