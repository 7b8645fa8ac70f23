"""The defaults are Kafka's."""

from __future__ import annotations

from barnabas.transaction.config import TransactionCoordinatorConfig


def test_the_defaults_are_kafkas() -> None:
    config = TransactionCoordinatorConfig()
    assert config.transaction_state_log_num_partitions == 50
    assert config.transaction_max_timeout_ms == 15 * 60_000
    assert config.transactional_id_expiration_ms == 7 * 24 * 3_600_000
    assert config.abort_timed_out_interval_ms == 10_000
    assert config.remove_expired_interval_ms == 3_600_000
    assert not config.two_phase_commit_enable
    assert config.request_timeout_ms == 30_000
    assert (config.add_partitions_retry_backoff_ms, config.add_partitions_retry_backoff_max_ms) == (20, 100)
    assert config.max_batch_bytes == 1024 * 1024 + 12
