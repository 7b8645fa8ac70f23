"""How far apart versions of a subject may be, and what may be done with subjects."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CompatibilityLevel", "Mode"]


class CompatibilityLevel(StrEnum):
    """A compatibility level; the new schema is compared with the latest version, or with all if the level is transitive."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all versions count."""
        return self.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """Whether the new schema must read what an old one has written."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Whether an old schema must read what the new one has written."""
        return self.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    """Whether subjects may change."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """Of all subjects, whatever mode one of them has."""
    IMPORT = "IMPORT"
    """New versions come with their ids."""
