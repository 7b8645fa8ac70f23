"""The figures of a plan."""

from barnabas.planning.plan import plan
from barnabas.planning.workload import Workload


def test_the_figures_follow_from_each_other() -> None:
    found = plan(Workload(100e6, consumers=4, groups=2, segment=1e9))
    figures = {each.name: each.value for each in found.figures}
    assert figures == {
        "stream": 100e6,
        "records": 100_000,
        "partitions": 4,
        "brokers": 19,
        "disk of a replica": 60.484e12,
        "disk": 181.452e12,
        "disk of a broker": 181.452e12 / 19,
        "network into a broker": 300e6 / 19,
        "network out of a broker": 400e6 / 19,
        "cost": 3629.04,
    }
    assert found.brokers == 19


def test_brokers_that_are_given_share_the_load() -> None:
    found = plan(Workload(100e6, brokers=25))
    figures = {each.name: each.value for each in found.figures}
    assert (figures["brokers"], figures["network into a broker"]) == (19, 12e6)
    assert {rule.name: rule.low for rule in found.partition_rules}["10 to 20 a broker and topic"] == 250


def test_growth_and_compression_are_in_the_formula() -> None:
    stream = plan(Workload(100e6, growth=50, years=2, compression=4)).figures[0]
    assert (stream.value, stream.formula) == (56.25e6, "100 MB/s × 1.5 ^ 2 years ÷ 4 (compression)")
