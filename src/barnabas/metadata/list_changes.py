"""Changes of a setting that is a list: an operator appends to it, or subtracts from it (KIP-339)."""

from __future__ import annotations

__all__ = ["changed_list"]


def changed_list(current: str | None, change: str | None, *, is_append: bool) -> str:
    """Return a list after a change of it, all of them with commas; what is appended twice is in it once."""
    parts, wanted = _parts(current), _parts(change)
    if is_append:
        parts += [part for part in dict.fromkeys(wanted) if part not in parts]
    else:
        parts = [part for part in parts if part not in wanted]
    return ",".join(parts)


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
