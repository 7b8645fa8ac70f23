"""The former name of `barnabas.spark.tables`: `from barnabas.spark.lake import delta_writer` goes on working."""

from __future__ import annotations

from barnabas.spark.tables import delta_writer

__all__ = ["delta_writer"]
