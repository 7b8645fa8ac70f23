"""The log cleaner's settings and worker, from the broker's configuration.

The settings `log.cleaner.*` may change while the broker runs, for one node or the cluster, and apply from the next cleaning on. A
broker on the operating system's files compacts in a child process; on simulated files it compacts inline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.config.config import BrokerConfig, value_in_force
from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.disk import Disk, OsDisk
from barnabas.log.log_flusher import RunBlocking
from barnabas.metadata.config_schema import ConfigValue
from barnabas.metadata.configs_image import ConfigurationsImage

if TYPE_CHECKING:
    from barnabas.log.cleaner_worker import CleanerWorker


def cleaner_config(config: BrokerConfig, configs: ConfigurationsImage) -> CleanerConfig:
    """Return the effective settings: static, then cluster-wide dynamic, then this broker's dynamic ones."""

    def value(name: str) -> ConfigValue:
        return value_in_force(config, name, configs)

    def number(name: str) -> float:
        found = value(name)
        assert isinstance(found, int | float), f"{name} is not a number"
        return found

    return CleanerConfig(
        enable=bool(value("log.cleaner.enable")) and number("log.cleaner.threads") > 0,
        dedupe_buffer_bytes=int(number("log.cleaner.dedupe.buffer.size")),
        load_factor=number("log.cleaner.io.buffer.load.factor"),
        max_bytes_per_second=number("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=int(number("log.cleaner.backoff.ms")),
    )


def cleaner_worker(disk: Disk) -> Callable[[RunBlocking], CleanerWorker]:
    """Return a function that makes the worker which compacts the logs on a disk."""

    def make(run_blocking: RunBlocking) -> CleanerWorker:
        # 3 ms of a start, which a broker with nothing to compact does not pay.
        from barnabas.log.cleaner_worker import InlineWorker, ProcessWorker

        return ProcessWorker(run_blocking) if isinstance(disk, OsDisk) else InlineWorker(disk)

    return make
