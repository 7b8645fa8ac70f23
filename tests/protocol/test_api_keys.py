"""The table of APIs."""

from __future__ import annotations

import pytest

from barnabas.protocol.api_keys import (
    REMOVED,
    ApiKey,
    api,
    descriptions,
    request_header_version,
    response_header_version,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ApiVersionsResponse, ResponseHeader


def test_all_keys_in_order() -> None:
    assert [int(key) for key in ApiKey] == list(range(95))
    assert set(descriptions()) == set(ApiKey) - REMOVED
    assert list(descriptions()) == sorted(descriptions())
    for key, described in descriptions().items():
        assert described.key == key
        assert described.name.upper() == ApiKey(key).name.replace("_", "")
        assert described.request_class.API_KEY == described.response_class.API_KEY == key


def test_descriptions() -> None:
    fetch = api(ApiKey.FETCH)
    assert (fetch.min_version, fetch.max_version, fetch.flexible_from) == (4, 18, 12)
    assert fetch.listeners == ("broker", "controller")
    assert api(ApiKey.VOTE).listeners == ("controller",)
    assert (fetch.request, fetch.response) == ("FetchRequest", "FetchResponse")


@pytest.mark.parametrize("key", [4, 7, 95, -1])
def test_no_such_api(key: int) -> None:
    with pytest.raises(KafkaError) as raised:
        api(key)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_unstable_versions_are_known_but_not_stable() -> None:
    assert (api(ApiKey.INIT_PRODUCER_ID).max_version, api(ApiKey.INIT_PRODUCER_ID).latest_stable) == (6, 5)
    assert api(ApiKey.PRODUCE).latest_stable == 13


def test_header_versions() -> None:
    assert [request_header_version(ApiKey.PRODUCE, v) for v in (3, 8, 9, 13, 99)] == [1, 1, 2, 2, 2]
    assert [response_header_version(ApiKey.PRODUCE, v) for v in (3, 8, 9, 13)] == [0, 0, 1, 1]
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1
    assert response_header_version(ApiKey.OFFSET_DELETE, 0) == 0


def test_the_response_header_of_api_versions_is_always_v0() -> None:
    for version in range(6):
        assert response_header_version(ApiKey.API_VERSIONS, version) == 0
    assert [request_header_version(ApiKey.API_VERSIONS, v) for v in (2, 3, 77)] == [1, 2, 2]
    # What a broker answers to a version it does not know: error 35, body v0, the range to use instead.
    key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=5)
    answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[key])
    header = ResponseHeader(correlation_id=7).encode(0)
    assert (header + answer.encode(0)).hex(" ", 2) == "0000 0007 0023 0000 0001 0012 0000 0005"


def test_produce_advertises_version_0_but_reads_from_3() -> None:
    produce = api(ApiKey.PRODUCE)
    assert (produce.advertised_min, produce.min_version) == (0, 3)
    assert [d.name for d in descriptions().values() if d.advertised_min != d.min_version] == ["Produce"]


def test_request_header_v2_from_the_flexible_version() -> None:
    for key, described in descriptions().items():
        for version in range(described.min_version, described.max_version + 1):
            flexible = described.flexible_from is not None and version >= described.flexible_from
            assert request_header_version(key, version) == (2 if flexible else 1)
            assert response_header_version(key, version) == (1 if flexible and key != 18 else 0)
