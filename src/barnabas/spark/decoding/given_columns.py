"""The checks of arguments that `decode` and `encode` share, and the way in which they add their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.words.nearest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["check_columns", "check_words", "named", "with_value_and_error"]

_FRAMINGS = ("plain", "confluent")
_BOTH = "__value_and_error"


def check_words(format: str, formats: Collection[str], framing: str, message: str | None, schemas: Any) -> None:
    """Raise a ValueError if the words of a call are not known, or do not go together."""
    for name, word, known in (("format", format, formats), ("framing", framing, _FRAMINGS)):
        if word not in known:
            raise ValueError(f"{name} '{word}' is not one of {', '.join(known)}{did_you_mean(word, known)}")
    if message is not None and format != "protobuf":
        raise ValueError("message= is for format protobuf")
    if schemas is not None and framing != "confluent":
        raise ValueError("schemas= is for framing confluent")


def check_columns(df: DataFrame, columns: Sequence[str], into: str, error: str) -> None:
    """Raise a ValueError if the data has not the columns that are read, or has those that are added."""
    for column in columns:
        if column not in df.columns:
            raise ValueError(f"there is no column '{column}'{did_you_mean(column, df.columns)}")
    for name in (into, error):
        if name in df.columns or into == error:
            raise ValueError(f"there is already a column '{name}': choose another name with into= and error=")


def named(column: str) -> Column:
    """Return a column by its name, whatever signs that has."""
    return F.col(f"`{column.replace('`', 2 * '`')}`")


def with_value_and_error(
    df: DataFrame, both: Column, split: Callable[[Column], tuple[Column, Column]], into: str, error: str
) -> DataFrame:
    """Add the two columns that `split` makes of a struct, which Spark evaluates once for each row."""
    value, why = split(F.col(_BOTH))
    kept = [named(name) for name in df.columns]
    return df.withColumn(_BOTH, both).select(*kept, value.alias(into), why.alias(error))
