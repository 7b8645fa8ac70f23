"""A topic as a Delta table, and the audit that compares the two.

`delta_writer` is imported when it is first used: the audit needs no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.spark.lake.delta_table import delta_writer as delta_writer

__all__ = ["delta_writer"]


def __getattr__(name: str) -> object:
    if name == "delta_writer":
        return import_module("barnabas.spark.lake.delta_table").delta_writer
    raise AttributeError(f"module 'barnabas.spark.lake' has no attribute {name!r}")
