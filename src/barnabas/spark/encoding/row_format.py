"""How rows become bytes, once the schema is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.spark.encoding.row_encoder import Encoder

__all__ = ["RowFormat"]


class RowFormat(NamedTuple):
    """How rows become bytes.

    Attributes:
        prefix: in front of each row's bytes; empty if they are not framed.
        make: makes the encoder, once for each task.
    """

    prefix: bytes
    make: Callable[[], Encoder]
