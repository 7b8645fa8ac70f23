"""A workload at the end of its years."""

from barnabas.planning.workload import Workload


def test_growth_and_compression() -> None:
    work = Workload(100e6, record_size=1000, growth=50, years=2, compression=5)
    assert (work.produced, work.records, work.stream) == (225e6, 225_000, 45e6)


def test_the_consumers_that_are_not_given_follow_from_their_speed() -> None:
    assert Workload(100e6).members == 1
    assert Workload(100e6, consumer_rate=10_000).members == 10
    assert Workload(100e6, consumer_rate=10_000, consumers=4).members == 4
