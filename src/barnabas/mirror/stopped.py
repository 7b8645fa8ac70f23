"""Why a mirror stops."""

from __future__ import annotations


class MirrorStopped(Exception):
    """The mirror cannot go on until somebody acts; what it has committed stays.

    Args:
        hint: what to do next.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint
