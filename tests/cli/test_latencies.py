"""The percentiles of latencies."""

from barnabas.cli.latencies import Latencies, Summary


def test_the_percentiles_of_a_thousand() -> None:
    found = Latencies()
    for milliseconds in range(1000, 0, -1):
        found.add(milliseconds / 1000)
    assert found.summary() == Summary(500.5, 1000.0, 500.0, 950.0, 990.0, 999.0)


def test_one_latency_is_every_percentile() -> None:
    found = Latencies()
    found.add(0.002)
    assert set(found.summary()) == {2.0}
    assert len(found) == 1


def test_nothing_measured() -> None:
    assert Latencies().summary() == Summary(0, 0, 0, 0, 0, 0)
