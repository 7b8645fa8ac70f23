"""Requests counted by API, version and error; quantiles of the last minutes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.metrics.request_times import ApiTimes, RequestTimes, error_counter
from barnabas.protocol.api_keys import api
from barnabas.protocol.messages import FetchResponse, MetadataResponse, ProduceResponse

PRODUCE, FETCH, METADATA = 0, 1, 3
SECOND_NS = 1_000_000_000


def context(key: int, version: int) -> RequestContext:
    return RequestContext(None, ConnectionInfo("test"), key, version)  # type: ignore[arg-type]


def counted(key: int, version: int, response: Any) -> dict[int, int]:
    times = ApiTimes(key)
    times.count_errors(response, version)
    return dict(times.errors)


def test_each_error_code_of_a_response_counts() -> None:
    partition = ProduceResponse.PartitionProduceResponse
    topic = ProduceResponse.TopicProduceResponse
    response = ProduceResponse(
        responses=[
            topic(partition_responses=[partition(error_code=0), partition(error_code=3)]),
            topic(partition_responses=[partition(error_code=3)]),
        ]
    )
    assert counted(PRODUCE, 9, response) == {0: 1, 3: 2}


def test_codes_that_a_version_does_not_have_do_not_count() -> None:
    response = FetchResponse(error_code=0, responses=[])
    assert counted(FETCH, 12, response) == {0: 1}
    assert counted(FETCH, 6, response) == {}


def test_nested_codes_count() -> None:
    response = MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(
                error_code=3, partitions=[MetadataResponse.MetadataResponsePartition(error_code=5)]
            )
        ]
    )
    counter: Counter[int] = Counter()
    error_counter(METADATA, 12)(response, counter)
    assert counter == {3: 1, 5: 1}


def test_quantiles_are_of_the_last_minutes() -> None:
    now_ns = 0
    times = RequestTimes(lambda: now_ns)
    for _ in range(99):
        times.answered(context(METADATA, 12), None, None, 100_000)
    times.answered(context(METADATA, 11), None, None, 500_000_000)
    api = times.by_key[METADATA]
    assert dict(api.by_version) == {12: 99, 11: 1}
    quantiles = dict(api.quantiles())
    assert 0.064 <= quantiles[0.5] <= 0.128
    assert 0.064 <= quantiles[0.99] <= 0.128
    assert quantiles[0.999] == pytest.approx(500, rel=0.1)
    assert api.total_ns == 99 * 100_000 + 500_000_000
    now_ns = 60 * SECOND_NS
    times.rotate_if_due()
    assert dict(api.quantiles()) == quantiles
    now_ns = 121 * SECOND_NS
    times.rotate_if_due()
    assert dict(api.quantiles()) == {}
    assert api.count == 100


def test_the_longest_times_have_a_bucket_too() -> None:
    times = ApiTimes(METADATA)
    times.took(10**15)
    times.took(0)
    assert sum(times.buckets) == 2
    assert times.buckets[0] == times.buckets[-1] == 1


@pytest.mark.parametrize("key", sorted(APIS))
def test_every_api_can_be_counted(key: int) -> None:
    description = api(key)
    for version in range(APIS[key].min_served, APIS[key].max_version + 1):
        counter: Counter[int] = Counter()
        error_counter(key, version)(description.response_class(), counter)
        assert set(counter) <= {0}
