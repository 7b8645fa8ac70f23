"""The transaction coordinator's golden scripts: requests, records, markers, answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import name_of, play, scripts_in
from tests.transaction.script import TransactionScript


@pytest.mark.parametrize("path", scripts_in(Path(__file__).parent / "scripts"), ids=name_of)
def test_script(path: Path) -> None:
    play(path, TransactionScript)
