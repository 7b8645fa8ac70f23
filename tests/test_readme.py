"""What the README shows is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def block(word: str) -> str:
    return next(text for text in BLOCKS if word in text)


@pytest.mark.slow
def test_the_complete_test_passes(tmp_path: Path) -> None:
    code = block("def test_")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    (tmp_path / "test_shop.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
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
