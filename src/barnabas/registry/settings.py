"""Compatibility levels and modes, of one subject or of all.

A level and `normalize` are kept; other fields of Confluent's configuration, such as metadata and rules, are refused.
"""

from __future__ import annotations

from typing import Any

from barnabas.registry.levels import CompatibilityLevel, Mode
from barnabas.registry.problems import Problem, invalid_level, invalid_mode, no_level, no_mode, not_permitted
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import config_key, config_record, mode_key, mode_record, tombstone
from barnabas.registry.writing import Decision

__all__ = ["change_config", "change_mode", "config_of", "mode_of", "reset_config", "reset_mode"]

_LEVEL = "compatibilityLevel"
_KEPT = ("compatibility", "normalize")


def config_of(state: RegistryState, subject: str | None, *, falls_back: bool = False) -> dict[str, Any]:
    """Return the configuration of a subject, or of all.

    Args:
        falls_back: return that of all if the subject has none of its own.

    Raises:
        Problem: 40408.
    """
    of_all = {_LEVEL: CompatibilityLevel.BACKWARD.value, **state.configs.get(None, {})}
    if subject is None:
        return of_all
    if subject not in state.configs and not falls_back:
        raise no_level(subject)
    return {**(of_all if falls_back else {}), **state.configs.get(subject, {})}


def change_config(state: RegistryState, subject: str | None, asked: dict[str, Any]) -> Decision[dict[str, Any]]:
    """Return the changed fields, and the record of the changed configuration.

    Raises:
        Problem: 42203, 42205.
    """
    _check_mode(state, subject)
    given = {name: value for name, value in asked.items() if value is not None}
    if others := sorted(given.keys() - set(_KEPT)):
        raise Problem(422, 422, f"This registry keeps {' and '.join(_KEPT)}, and not {others[0][:80]!r}.")
    changed: dict[str, Any] = {}
    if "compatibility" in given:
        changed[_LEVEL] = _level(given["compatibility"])
    if "normalize" in given:
        if not isinstance(given["normalize"], bool):
            raise Problem(422, 422, "normalize is true or false.")
        changed["normalize"] = given["normalize"]
    if not changed:
        raise invalid_level("")
    if _LEVEL in changed:
        given["compatibility"] = changed[_LEVEL]
    return Decision(given, [config_record(subject, {**state.configs.get(subject, {}), **changed})])


def reset_config(state: RegistryState, subject: str | None) -> Decision[dict[str, Any]]:
    """Return the configuration until now, and the record that takes it away.

    Raises:
        Problem: 40408, 42205.
    """
    _check_mode(state, subject)
    before = config_of(state, subject)
    return Decision(before, [tombstone(config_key(subject))] if subject in state.configs else ())


def mode_of(state: RegistryState, subject: str | None, *, falls_back: bool = False) -> Mode:
    """Return the mode of a subject, or of all.

    Raises:
        Problem: 40409.
    """
    if subject is not None and subject not in state.modes and not falls_back:
        raise no_mode(subject)
    if subject is None:
        return state.modes.get(None, Mode.READWRITE)
    return state.mode(subject) if falls_back else state.modes[subject]


def change_mode(state: RegistryState, subject: str | None, asked: Any, *, force: bool) -> Decision[Mode]:
    """Return a mode, and its record.

    Args:
        force: change to IMPORT though there are schemas.

    Raises:
        Problem: 42204, 42205.
    """
    try:
        mode = Mode(asked.upper() if isinstance(asked, str) else "")
    except ValueError:
        raise invalid_mode(asked) from None
    if mode is Mode.IMPORT and not force:
        taken = state.subjects() if subject is None else state.versions(subject)
        if taken:
            raise not_permitted("Cannot import since found existing subjects; force=true allows it")
    if mode is Mode.READONLY_OVERRIDE and subject is not None:
        raise invalid_mode(f"{mode} of one subject")
    return Decision(mode, [mode_record(subject, mode)])


def reset_mode(state: RegistryState, subject: str | None) -> Decision[Mode]:
    """Return the mode until now, and the record that takes it away.

    Raises:
        Problem: 40409.
    """
    before = mode_of(state, subject)
    return Decision(before, [tombstone(mode_key(subject))] if subject in state.modes else ())


def _level(given: Any) -> str:
    try:
        return CompatibilityLevel(given.upper() if isinstance(given, str) else "").value
    except ValueError:
        raise invalid_level(given) from None


def _check_mode(state: RegistryState, subject: str | None) -> None:
    mode = state.modes.get(None, Mode.READWRITE) if subject is None else state.mode(subject)
    if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        raise not_permitted("The registry, or the subject, is in read-only mode")
