"""The settings of one log: Kafka's topic settings that the log uses, with Kafka 4.4's defaults.

Names are Kafka's with `_` for `.` and `-`. The table of all settings, their sentences and validators is the server's;
this class holds valid values. No value is `None`: Kafka's "unlimited" is -1, "never" is the largest int64.
"""

from __future__ import annotations

from dataclasses import dataclass

INT64_MAX = 2**63 - 1
DELETE = frozenset({"delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One log's settings.

    `compression_type` is `producer` (keep the client's codec), `uncompressed`, or a codec's name with its level in
    `compression_gzip_level`, `compression_lz4_level`, `compression_zstd_level`.
    `barnabas_max_decompressed_factor` times `max_message_bytes` bytes of records may be in a compressed batch.
    `message_timestamp_type` is `CreateTime` or `LogAppendTime`.
    """

    cleanup_policy: frozenset[str] = DELETE
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    producer_id_expiration_ms: int = 86_400_000
    barnabas_flush_before_ack: bool = False
    barnabas_max_decompressed_factor: int = 64
    # Off unless the broker sets it: a log alone has no coordinator to ask.
    transaction_partition_verification_enable: bool = False

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_decompressed_bytes(self) -> int:
        """How many bytes of records a batch may open into."""
        return self.barnabas_max_decompressed_factor * self.max_message_bytes

    def compression_level(self, codec: str) -> int | None:
        """Return the configured level of a codec by its name, None if the codec has no levels."""
        if codec == "gzip":
            return self.compression_gzip_level
        if codec == "lz4":
            return self.compression_lz4_level
        if codec == "zstd":
            return self.compression_zstd_level
        return None
