"""The group coordinator's settings, as values (control plane).

Names are Kafka's with the prefix `group.` or `offsets.` kept where Kafka has it; defaults are Kafka 4.4's. The server parses
configuration files and hands over this frozen picture.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    """What the group coordinator needs to know."""

    offsets_topic_num_partitions: int = 50
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 10_080 * 60_000
    """From offsets.retention.minutes."""
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: int = 0
    offset_metadata_max_bytes: int = 4_096
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    new_member_join_timeout_ms: int = 300_000
    """How long a member that has not got its first answer is kept (a constant in Kafka)."""
    max_batch_bytes: int = 1_048_588
    """The internal topic's max.message.bytes."""
