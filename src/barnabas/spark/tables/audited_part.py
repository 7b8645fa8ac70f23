"""A part of a table that is audited alone: `partition=0`, `timestamp>=-1h`, `day=2026-11-21`.

Each condition is a column, one of = < <= > >=, and a value of the column's type; a row of the part fulfils all of them. A time is written
as everywhere on the command line. The log has the columns partition, offset and timestamp, so of these the part's records are known. Of
another column only the table knows which rows are the part: whether records are missing from it is then not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.words.printable import printable
from barnabas.words.times import parse_time_ms

Mask = npt.NDArray[np.bool_]

LOG_COLUMNS = ("partition", "offset", "timestamp")
_CONDITION = re.compile(r"\s*([^<>=]+?)\s*(<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARE = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


@dataclass(frozen=True)
class Part:
    """The rows that fulfil all conditions: column, comparison, value; every row without any.

    Attributes:
        now_ms: times such as `-1h` count back from it.
    """

    conditions: tuple[tuple[str, str, str], ...] = ()
    now_ms: int = 0

    def __str__(self) -> str:
        return " and ".join(" ".join(each) for each in self.conditions)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for column, _, _ in self.conditions))

    @property
    def unknown_to_the_log(self) -> list[str]:
        """The columns that only the table has."""
        return [name for name in self.columns if name not in LOG_COLUMNS]

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Return which rows of a batch with the part's columns belong to it.

        Raises:
            ValueError: a value is not one of its column's type.
        """
        found = np.ones(batch.num_rows, np.bool_)
        for name, comparison, text in self.conditions:
            column = batch.column(name)
            fulfils = _COMPARE[comparison](column, self._value(name, text, column.type))
            found &= np.asarray(pc.fill_null(fulfils, False))
        return found

    def has_partition(self, partition: int) -> bool:
        """Return whether a partition of the topic can have records of the part."""
        alone = Part(tuple(each for each in self.conditions if each[0] == "partition"))
        return bool(alone.mask(pa.record_batch({"partition": pa.array([partition], pa.int64())}))[0])

    def _value(self, name: str, text: str, kind: pa.DataType) -> pa.Scalar:
        try:
            if pa.types.is_timestamp(kind):
                return pa.scalar(parse_time_ms(text, self.now_ms), pa.timestamp("ms", kind.tz)).cast(kind)
            return pa.scalar(text).cast(kind)
        except (pa.ArrowException, ValueError):
            raise ValueError(f"column {printable(name)} is {kind}, and '{printable(text)}' is none") from None


def parse_part(texts: Sequence[str], now_ms: int) -> Part:
    """Return the part that a command line names, a condition each.

    Raises:
        ValueError: a text is not a condition.
    """
    found = []
    for text in texts:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(
                f"'{printable(text)}' is not a condition: write COLUMN=VALUE, or <, <=, >, >= instead of =, such as "
                "partition=0, timestamp>=-1h or day=2026-11-21"
            )
        found.append((match[1], match[2], match[3]))
    return Part(tuple(found), now_ms)
