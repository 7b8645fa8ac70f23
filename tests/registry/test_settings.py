"""Decisions about levels and modes: their records."""

from __future__ import annotations

import pytest

from barnabas.registry.levels import Mode
from barnabas.registry.problems import Problem
from barnabas.registry.settings import change_config, change_mode, config_of, mode_of, reset_config, reset_mode
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import config_key, config_record, mode_key, mode_record, tombstone
from barnabas.registry.writing import Decision


def test_a_level_of_all_and_of_one() -> None:
    state = RegistryState()
    changed = change_config(state, None, {"compatibility": "full"})
    assert changed == Decision({"compatibility": "FULL"}, [config_record(None, {"compatibilityLevel": "FULL"})])
    state.replay(*changed.records[0])
    assert config_of(state, "s", falls_back=True) == {"compatibilityLevel": "FULL"}
    assert reset_config(state, None) == Decision({"compatibilityLevel": "FULL"}, [tombstone(config_key(None))])
    assert reset_config(RegistryState(), None) == Decision({"compatibilityLevel": "BACKWARD"})


def test_a_change_keeps_the_other_fields() -> None:
    state = RegistryState()
    state.replay(*config_record("s", {"compatibilityLevel": "NONE"}))
    changed = change_config(state, "s", {"normalize": True, "alias": None})
    assert changed.records == [config_record("s", {"compatibilityLevel": "NONE", "normalize": True})]
    with pytest.raises(Problem, match="normalize is true or false"):
        change_config(state, "s", {"normalize": 1})
    with pytest.raises(Problem, match="and not 'alias'"):
        change_config(state, "s", {"alias": "t"})


def test_a_mode() -> None:
    state = RegistryState()
    changed = change_mode(state, "s", "readonly", force=False)
    assert changed == Decision(Mode.READONLY, [mode_record("s", "READONLY")])
    state.replay(*changed.records[0])
    assert (mode_of(state, "s"), mode_of(state, None), mode_of(state, "t", falls_back=True)) == (
        Mode.READONLY, Mode.READWRITE, Mode.READWRITE,
    )  # fmt: skip
    assert reset_mode(state, "s") == Decision(Mode.READONLY, [tombstone(mode_key("s"))])
    for wanted in ("SOME", None, "READONLY_OVERRIDE"):
        with pytest.raises(Problem) as problem:
            change_mode(state, "s", wanted, force=False)
        assert problem.value.code == 42204
