"""What a coordinator holds of a partition: the one place where tests look inside the runtime."""

from __future__ import annotations

from typing import Any

__all__ = ["context_of", "runtime_of", "shard_of"]


def runtime_of(coordinator: Any) -> Any:
    """Return the runtime under a coordinator of groups, transactions or share states."""
    return coordinator._runtime


def context_of(coordinator: Any, partition: int = 0) -> Any:
    """Return the context of a partition, None if it is not loaded."""
    return runtime_of(coordinator)._contexts.get(partition)


def shard_of(coordinator: Any, partition: int = 0) -> Any:
    """Return the shard of a partition that is active."""
    return context_of(coordinator, partition).shard
