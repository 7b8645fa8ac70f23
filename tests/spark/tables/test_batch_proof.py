"""What is kept of a batch: the same for the same rows, however they are divided, and for other rows another."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.spark.tables.batch_proof import BatchProof, proof_of
from tests.spark.session import SPARK


def test_a_sum_beyond_64_bits() -> None:
    assert BatchProof(1, -1) == BatchProof(1, 2**64 - 1) == BatchProof(1, 2**65 - 1)
    assert BatchProof(1, 2**63).signed_digest == -(2**63)
    assert BatchProof(1, 2**63 - 1).signed_digest == 2**63 - 1
    assert str(BatchProof(3, 255)) == "3 rows, digest 00000000000000ff"


class TestInSpark:
    pytestmark = SPARK

    def test_neither_order_nor_tasks_matter(self, spark: Any) -> None:
        rows = spark.range(1000).selectExpr("id", "string(id) as text", "array(struct(id as key)) as headers")
        found = proof_of(rows)
        assert found.rows == 1000
        assert proof_of(rows.repartition(7).sort("text")) == found

    @pytest.mark.parametrize(
        "other", ["id + 1 as id, text", "id, concat(text, 'x') as text", "id, cast(null as string) text"]
    )
    def test_other_values_matter(self, spark: Any, other: str) -> None:
        rows = spark.range(10).selectExpr("id", "string(id) as text")
        found = proof_of(rows.selectExpr(*other.split(", ", 1)))
        assert (found.rows, found == proof_of(rows)) == (10, False)

    def test_rows_that_are_there_twice_do_not_cancel_out(self, spark: Any) -> None:
        rows, others = (spark.range(3).selectExpr(f"{value} as a") for value in (1, 2))
        assert proof_of(rows) != proof_of(others)

    def test_what_may_differ_is_only_counted(self, spark: Any) -> None:
        columns = ["map(1, {0}) as m", "struct({0} * 0.5D as d) as s", "array(float({0})) as f"]
        proofs = {proof_of(spark.range(3).selectExpr(*[each.format(n) for each in columns])) for n in (1, 2)}
        assert proofs == {BatchProof(3, 0)}

    def test_an_empty_batch_and_awkward_names(self, spark: Any) -> None:
        assert proof_of(spark.range(0)) == BatchProof(0, 0)
        assert proof_of(spark.range(2).selectExpr("id as `a.b`", "id as `c``d`")).rows == 2
