"""The last line says what was looked at."""

from __future__ import annotations

from barnabas.adopt.looked_at import counts, looked_at
from tests.adopt.states import HEALTHY


def test_counts() -> None:
    found = counts(HEALTHY)
    assert (found["broker"], found["topic"], found["setting"], found["group"]) == (3, 1, 1, 0)


def test_plurals() -> None:
    assert (
        looked_at({"broker": 1, "directory": 2, "user of SCRAM": 0})
        == "looked at 1 broker, 2 directories, 0 users of SCRAM"
    )
