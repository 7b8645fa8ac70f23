"""The salts of `barnabas.client.salted_keys` in columns of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.client.salted_keys import text

if TYPE_CHECKING:
    from pyspark.sql import Column

    from barnabas.client.salted_keys import SaltedKeys


def salted(keys: SaltedKeys, key: Column, by: Column) -> Column:
    """Return the keys to write, binary.

    Args:
        keys: the hot keys.
        key: the keys without salt, of type string or binary.
        by: what spreads the records of a hot key: a column with many values, which is the same when Spark computes the row again, such
            as an event's id. `rand()` is not: a task that is repeated would write other keys.

    A row whose key is what a hot key becomes fails the query.
    """
    binary = key.cast("binary")
    made = binary
    for original, forms in keys.forms.items():
        salt = F.pmod(F.xxhash64(by), F.lit(len(forms))).cast("string").cast("binary")
        taken = F.raise_error(
            F.lit(f"the column has keys that the hot key {text(original)} becomes: rename one of them")
        )
        made = (
            F.when(binary == F.lit(original), F.concat(binary, F.lit(b"-"), salt))
            .when(binary.isin(*forms), taken.cast("binary"))
            .otherwise(made)
        )
    return made


def original(keys: SaltedKeys, key: Column) -> Column:
    """Return the keys without salt, binary: what to group by.

    Args:
        keys: the hot keys.
        key: the keys as they were read.
    """
    made = binary = key.cast("binary")
    for hot, forms in keys.forms.items():
        made = F.when(binary.isin(*forms), F.lit(hot)).otherwise(made)
    return made
