"""The transaction coordinator's settings, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionCoordinatorConfig:
    """Kafka's names and defaults; times in milliseconds, sizes in bytes."""

    transaction_state_log_num_partitions: int = 50
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    two_phase_commit_enable: bool = False
    request_timeout_ms: int = 30_000
    add_partitions_retry_backoff_ms: int = 20
    add_partitions_retry_backoff_max_ms: int = 100
    max_batch_bytes: int = 1_048_588
