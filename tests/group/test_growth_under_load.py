"""Growth under load, with kills; and the same load without an order, to show that the judge sees disorder."""

from __future__ import annotations

import pytest

from tests.group.growth_under_load import KINDS, run

pytestmark = [pytest.mark.long, pytest.mark.slow]


@pytest.mark.parametrize("nodes", [1, 3])
def test_ordered_growth_keeps_the_order_of_every_key(nodes: int) -> None:
    outcomes, kills = run(1, plain=False, nodes=nodes)
    assert len(kills) == 7
    assert {kind: (each.disorder, each.lost) for kind, each in outcomes.items()} == dict.fromkeys(KINDS, (0, 0))


def test_growth_without_an_order_reads_keys_out_of_order() -> None:
    outcomes, _ = run(1, plain=True)
    assert all(each.disorder for each in outcomes.values())
