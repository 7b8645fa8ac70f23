"""The error of a value that cannot be decoded, in a module without Spark: the console decodes by the same frames and schemas."""

from __future__ import annotations

__all__ = ["BadValue"]


class BadValue(Exception):
    """A row's bytes cannot be decoded; the message is for the column `error`."""
