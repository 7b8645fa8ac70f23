"""Makes the loop's turns short, or long, for one test: as if all that a turn costs were more, or less."""

from __future__ import annotations

from importlib import import_module

import pytest

from barnabas.turns import new_budget

LEAST = {
    "barnabas.turns": 1,
    "barnabas.api.serving.dispatch": 5,
    "barnabas.group.parts": 5,
    "barnabas.metadata.batches": 16,
    "barnabas.metadata.metadata_loader": 16,
    "barnabas.metrics.exposition": 5,
}
"""The modules that import the constant, each with the smallest turn that has room for one of its elements."""


def set_turn(patch: pytest.MonkeyPatch, cost: int) -> None:
    """Let a turn of the loop end when it has cost so much."""
    modules = {
        import_module(name): least for name, least in LEAST.items()
    }  # All, before one of them imports what is patched.
    for module, least in modules.items():
        patch.setattr(module, "TURN", max(cost, least))
    new_budget()
