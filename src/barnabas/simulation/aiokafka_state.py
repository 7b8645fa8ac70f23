"""The state that aiokafka keeps outside its loop, the same in each run of a seed.

- Its compiled record builder stamps records that come without a timestamp, by a clock that Python cannot replace. While this lasts, its
  producer gives each record its timestamp before.
- Producers without a `client_id` are numbered through the whole process. While this lasts, the numbers begin with 1.
- A client picks brokers from a set whose order depends on addresses in memory (before Python 3.12, that of None). While this lasts, the
  set has the order in which the cluster named them.

aiokafka itself is unchanged otherwise, and as before afterwards. Nothing happens if it is not installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from barnabas.simulation.clocks import replaced

__all__ = ["aiokafka_as_new"]


@contextmanager
def aiokafka_as_new() -> Iterator[None]:
    """Let aiokafka begin as in a new process, and stamp its records by the virtual clock; `virtual_clocks` must last."""
    with ExitStack() as stack:
        try:
            builder = import_module("aiokafka.producer.message_accumulator").BatchBuilder
            producer = import_module("aiokafka.producer.producer").AIOKafkaProducer
            metadata = import_module("aiokafka.cluster").ClusterMetadata
        except ImportError:
            yield
            return
        append = builder.append

        def stamped(self: Any, *, timestamp: int | None, **parts: Any) -> Any:
            return append(self, timestamp=int(time.time() * 1000) if timestamp is None else timestamp, **parts)

        def in_order(self: Any) -> Any:
            return dict.fromkeys(self._brokers.values() or self._bootstrap_brokers.values()).keys()

        replaced(stack, metadata, "brokers", in_order)
        replaced(stack, builder, "append", stamped)
        replaced(stack, producer, "_PRODUCER_CLIENT_ID_SEQUENCE", 0)
        yield
