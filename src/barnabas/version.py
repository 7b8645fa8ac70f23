"""The version, for a broker that says it at its start: to ask the installed package takes a tenth of a start."""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.1.0.dev0"
