"""A plan that cannot be met names the input to change."""

import pytest

from barnabas.planning.plan import plan
from barnabas.planning.workload import Workload


@pytest.mark.parametrize(
    ("workload", "problem", "change"),
    [
        (Workload(1000, brokers=2), "replicas needs 3 brokers, and there are 2", "give --nodes 3, or lower --replicas"),
        (Workload(1e9, replicas=1, groups=0, retention_s=60, brokers=1), "write needs 5 brokers, and there is 1",
         "give --nodes 5, or raise --compression or --broker-rate, or lower --replicas"),
        (Workload(100e6, replicas=1, groups=9, retention_s=60, brokers=4), "read needs 5 brokers, and there are 4",
         "give --nodes 5, or raise --compression or --broker-rate, or lower --groups"),
        (Workload(100e6, replicas=1, brokers=6), "disk needs 7 brokers, and there are 6",
         "give --nodes 7, or shorten --retention, or raise --compression or --broker-disk"),
        (Workload(1000, replicas=1, brokers=1, consumers=4001), "partitions needs 2 brokers, and there is 1",
         "give --nodes 2, or raise --partition-rate, or lower --consumers"),
        (Workload(100e6, consumers=1, consumer_rate=10_000), "1 consumer can handle 10,000 records/s, and 100,000/s come",
         "give --consumers 10, or raise --consumer-rate"),
    ],
)  # fmt: skip
def test_the_input_to_change(workload: Workload, problem: str, change: str) -> None:
    assert (problem, change) in plan(workload).shortages


def test_enough_is_no_shortage() -> None:
    assert plan(Workload(100e6, brokers=19, consumers=10, consumer_rate=10_000)).shortages == []
