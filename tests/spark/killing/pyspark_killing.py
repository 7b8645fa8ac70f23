"""`format("killing")`: the sink, with places at which Spark's driver dies by SIGKILL.

Spark finds this module by its name, in each of its Python processes. A file named for a place, in the folder that
`KILLING` names, arms it; dying disarms it. `pid` in the same folder is the driver's process.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pyspark_barnabas
from barnabas.client.producer import Producer
from barnabas.spark.sink import protocol as sink_protocol
from barnabas.spark.sink.decisions import DecisionLog
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.writers import StreamSink


class KillingSink(StreamSink):
    """A class of this module, so that tasks import it."""


class DefaultSource(pyspark_barnabas.DefaultSource):
    """The sink that dies."""

    @classmethod
    def name(cls) -> str:
        return "killing"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        sink = super().streamWriter(schema, overwrite)
        assert isinstance(sink, StreamSink)
        return KillingSink(sink._options)


def die(place: str) -> None:
    armed = Path(os.environ["KILLING"]) / place
    if armed.exists():
        armed.unlink()
        os.kill(int((armed.parent / "pid").read_text()), signal.SIGKILL)
        time.sleep(60)


def _wrap(owner: Any, name: str, wrapper: Any) -> None:
    original = getattr(owner, name)
    if not getattr(original, "kills", False):

        def wrapped(*arguments: Any, **named: Any) -> Any:
            return wrapper(original, *arguments, **named)

        wrapped.kills = True  # type: ignore[attr-defined]
        setattr(owner, name, wrapped)


def _send(send: Any, producer: Producer, partition: Any, records: Any) -> None:
    send(producer, partition, records)
    if partition.topic != "__barnabas_sink" and producer.transactional_id is not None:
        # Some of the rows are on the broker.
        producer.flush()
        die("in a task")


def _commit(commit: Any, driver: SinkDriver, prepared: Any) -> None:
    die("before the decision")
    commit(driver, prepared)
    die("after the commits")


def _write(write: Any, log: DecisionLog, decision: Any) -> None:
    write(log, decision)
    die("after the decision")


def _end(end: Any, cluster: Any, transactions: Any, **named: Any) -> Any:
    wanted = list(transactions)
    if named["commit"] and len(wanted) > 1:
        end(cluster, wanted[: len(wanted) // 2], **named)
        die("between commits")
    return end(cluster, wanted, **named)


_wrap(Producer, "send", _send)
_wrap(SinkDriver, "commit", _commit)
_wrap(DecisionLog, "write", _write)
_wrap(sink_protocol, "end_transactions", _end)
