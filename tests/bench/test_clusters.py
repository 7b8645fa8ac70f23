"""What the rows of clusters compute from the nodes' metrics."""

from __future__ import annotations

from bench.cluster_rows import cluster_rows
from bench.clusters import BUCKET, longest_lag
from bench.report import OURS


def test_the_longest_lag_is_the_bound_of_the_last_bucket_that_grew():
    before = {0.005: 10, 0.05: 2, 0.1: 1}
    assert longest_lag(before, {0.005: 12, 0.05: 3, 0.1: 1}) == 0.05
    assert longest_lag(before, before) == 0.0


def test_buckets_are_read_from_the_exposition():
    text = '# TYPE barnabas_loop_lag_seconds histogram\nbarnabas_loop_lag_seconds_bucket{le="0.05"} 7\n'
    text += 'barnabas_loop_lag_seconds_bucket{le="+Inf"} 8\nother_bucket{le="0.05"} 1\n'
    assert BUCKET.findall(text) == [("0.05", "7"), ("+Inf", "8")]


def test_each_row_is_chosen_by_the_word_cluster_and_measured_one_way():
    rows = cluster_rows(300, 4)
    assert all(row.name.startswith("cluster") and bool(row.run) != bool(row.run_alone) for row in rows)
    assert len({row.name for row in rows}) == len(rows)
    assert [row.sides for row in rows if row.name.startswith("cluster of")] == [(OURS,), (OURS,)]
