"""The proof that a table keeps of the last batch of each query: a repeated batch is the same batch.

A batch is skipped because its number is in the table's log. If Spark planned it again with more in it, which happens with a checkpoint
that was restored from a backup or mended by hand, the new rows would be lost. So the log has not only the number, but also

    rows      how many rows the batch had
    digest    the sum of Spark's xxhash64 of each row, modulo 2**64

The sum depends neither on the order of the rows nor on the tasks that they are divided among.

Left out of the digest are columns whose values need not be the same in a repeated batch: floating-point numbers, whose sums depend on
the order of addition, and maps and variants, which Spark does not hash. Their rows are still counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_MODULUS = 1 << 64


@dataclass(frozen=True, slots=True)
class BatchProof:
    """How many rows a batch has, and the sum of their hashes; any whole number will do for the sum."""

    rows: int
    digest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", self.digest % _MODULUS)

    def __str__(self) -> str:
        return f"{self.rows} rows, digest {self.digest:016x}"

    @property
    def signed_digest(self) -> int:
        """The digest as a number of 64 bits with a sign."""
        return self.digest - _MODULUS if self.digest >= _MODULUS // 2 else self.digest


def proof_of(batch: DataFrame) -> BatchProof:
    """Read a batch, and return its proof."""
    # A table's upkeep and its audit know proofs, and do without Spark.
    from pyspark.sql import functions as F

    # Exact: the sum of two or more hashes needs not fit into a long, which is an error in Spark.
    total = F.sum(row_digest(batch).cast("decimal(20,0)"))
    (found,) = batch.select(F.count("*"), total).collect()
    return BatchProof(found[0], int(found[1] or 0))


def row_digest(batch: DataFrame) -> Column:
    """Return the column of each row's hash."""
    from pyspark.sql import functions as F

    hashed = [F.col(_quoted(each.name)) for each in batch.schema.fields if _is_hashed(each.dataType)]
    return F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "`" * 2) + "`"


def _is_hashed(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return all(_is_hashed(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_hashed(kind.elementType)
    return not isinstance(kind, (FloatType, DoubleType, MapType, VariantType))
