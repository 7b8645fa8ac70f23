"""The block changes one threshold of the collector, and leaves it as it was."""

from __future__ import annotations

import gc

from barnabas.cli.rare_collections import rare_collections


def test_collections_are_rare_only_within_the_block() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == (20_000, *before[1:])
    assert gc.get_threshold() == before
