"""The broker epoch in the marker of a clean stop."""

from __future__ import annotations

import pytest

from barnabas.log import clean_shutdown_file


def test_the_marker_is_written_as_kafka_writes_it() -> None:
    assert clean_shutdown_file.encode(42) == b'{"version":0,"brokerEpoch":42}'
    assert clean_shutdown_file.decode(clean_shutdown_file.encode(42)) == 42


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"{",
        b"7",
        b"[]",
        b"{}",
        b'{"brokerEpoch":"7"}',
        b'{"brokerEpoch":true}',
        b'{"brokerEpoch":null}',
        b'{"brokerEpoch":-2}',
        b'{"brokerEpoch":9223372036854775808}',
    ],
)
def test_a_marker_that_names_no_epoch_is_a_marker_all_the_same(content: bytes) -> None:
    assert clean_shutdown_file.decode(content) == -1
