"""What a rule says of the number that a plan takes."""

import pytest

from barnabas.planning.rule import Kind, Rule


@pytest.mark.parametrize(
    ("kind", "chosen", "verdict"),
    [
        (Kind.NEED, 9, "asks for more"),
        (Kind.NEED, 10, "agrees"),
        (Kind.NEED, 21, "agrees"),
        (Kind.RANGE, 9, "asks for more"),
        (Kind.RANGE, 20, "agrees"),
        (Kind.RANGE, 21, "asks for fewer"),
        (Kind.CEILING, 10, "allows it"),
        (Kind.CEILING, 20, "warns of it"),
        (Kind.CEILING, 21, "forbids it"),
    ],
)
def test_verdicts(kind: Kind, chosen: int, verdict: str) -> None:
    assert Rule("", kind, "", 10, 20, "").verdict(chosen) == verdict
