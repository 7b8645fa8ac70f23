"""The controller's golden scripts: request, records, answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata.script import SCRIPTS, check_script


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    check_script(path)
