"""The rules for partitions contradict each other; the plan takes the largest need."""

from barnabas.planning.partition_rules import choose, partition_rules
from barnabas.planning.workload import Workload


def spans(workload: Workload, brokers: int) -> dict[str, tuple[int, int]]:
    return {rule.name: (rule.low, rule.high) for rule in partition_rules(workload, brokers)}


def test_every_rule_for_one_workload() -> None:
    assert spans(Workload(500e6, consumers=10, consumer_rate=100_000), brokers=6) == {
        "target throughput": (20, 20),
        "slow and fast partitions": (10, 50),
        "consumers' speed": (5, 5),
        "one for each consumer": (10, 10),
        "3 to 6 times the consumers": (30, 60),
        "10 to 20 a broker and topic": (60, 120),
        "1,000 in a cluster": (1, 1000),
        "2,000 to 4,000 replicas a broker": (4000, 8000),
    }


def test_faster_partitions_are_fewer() -> None:
    assert spans(Workload(1e9, partition_rate=50e6), 3)["target throughput"] == (20, 20)


def test_consumers_of_unknown_speed_have_no_rule_of_speed() -> None:
    assert "consumers' speed" not in spans(Workload(1e6), 3)


def test_the_largest_need_is_rounded_up_to_a_multiple_of_the_consumers() -> None:
    chosen = choose(partition_rules(Workload(500e6, consumers=3), 3), 3)
    assert (chosen.partitions, chosen.formula) == (21, "max(20, 3), rounded up to a multiple of 3 consumers")
    assert "“target throughput”" in chosen.reason


def test_slow_consumers_decide() -> None:
    chosen = choose(partition_rules(Workload(100e6, consumer_rate=10_000), 3), 10)
    assert (chosen.partitions, chosen.formula) == (10, "max(4, 10, 10)")
    assert "“consumers' speed”" in chosen.reason
