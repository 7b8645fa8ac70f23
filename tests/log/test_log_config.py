"""A log's settings: Kafka 4.4's defaults."""

from __future__ import annotations

import dataclasses

import pytest

from barnabas.log.log_config import LogConfig


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.delete
    assert not config.compact
    assert not config.log_append_time
    assert (config.segment_bytes, config.segment_ms, config.segment_index_bytes) == (1 << 30, 604_800_000, 10 << 20)
    assert (config.retention_ms, config.retention_bytes) == (604_800_000, -1)
    assert (config.max_message_bytes, config.index_interval_bytes) == (1_048_588, 4096)
    assert (config.flush_messages, config.flush_ms) == (2**63 - 1, 2**63 - 1)
    assert (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms) == (2**63 - 1, 3_600_000)
    assert (config.file_delete_delay_ms, config.producer_id_expiration_ms) == (60_000, 86_400_000)


def test_levels_belong_to_codecs() -> None:
    config = LogConfig(compression_zstd_level=7)
    assert [config.compression_level(codec) for codec in ("gzip", "snappy", "lz4", "zstd")] == [-1, None, 9, 7]


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        LogConfig().segment_bytes = 1  # type: ignore[misc]
