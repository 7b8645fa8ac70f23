"""The state of a cluster: what could not be read is empty."""

from __future__ import annotations

import dataclasses

import pytest

from barnabas.adopt.cluster_state import ClusterState


def test_a_state_of_which_nothing_could_be_read() -> None:
    state = ClusterState(None, ())
    assert (state.features, state.acls, state.tokens) == ({}, None, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.moving = 1  # type: ignore[misc]
