"""The rules for brokers: the slowest resource decides."""

from barnabas.planning.broker_rules import broker_rules, load_of
from barnabas.planning.sums import DAY_S
from barnabas.planning.workload import Workload


def test_what_a_topic_asks_of_the_cluster() -> None:
    work = Workload(100e6, retention_s=7 * DAY_S, groups=2, segment=1e9)
    assert load_of(work, 20) == (300e6, 400e6, 60.5e12, 181.5e12, 60)


def test_every_rule() -> None:
    work = Workload(1e9, retention_s=DAY_S, groups=3, segment=1e9)
    assert {rule.name: rule.low for rule in broker_rules(work, load_of(work, 4000))} == {
        "replicas": 3,
        "write": 15,
        "read": 25,
        "disk": 28,
        "partitions": 3,
        "1,000,000 small records/s": 1,
        "2,000,000 writes/s on three": 3,
        "1 TB a broker": 272,
    }
