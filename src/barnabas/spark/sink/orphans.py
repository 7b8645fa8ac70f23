"""Open transactions of Spark sinks, sink by sink, for somebody who finds readers held back.

A query that was killed leaves the transactions of its last batch open, and readers of committed records wait for them.
The transactional ids say whose they are: PREFIX/QUERY/WORKER/NUMBER. To end them, `SinkDriver.settle` takes the query's
place: it commits what the query had decided, and aborts the rest.

A batch that is being written has open transactions too; to settle its sink makes the batch fail, and nothing is lost.
The last sign of life (`signs_of_life`) tells the two apart: that of a dead query gets older and older.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.transactions import TransactionDescription, list_transactions
from barnabas.spark.sink.signs_of_life import last_signs
from barnabas.spark.sink.sink_transactions import described
from barnabas.words.sink_names import SEPARATOR, sink_of


@dataclass(frozen=True, slots=True)
class OpenSink:
    """A sink with open transactions.

    Attributes:
        name: PREFIX/QUERY; the query is Spark's id of a stream, or a batch write's `queryId`.
        topics: with rows in these transactions, sorted.
        since_ms: when the oldest of them began.
        seen_ms: when the query was last seen at work.
    """

    name: str
    transactions: int
    topics: tuple[str, ...]
    since_ms: int
    seen_ms: int


def query_of(name: str) -> str:
    """Return the query in a sink's name."""
    return name.split(SEPARATOR)[1]


def open_sinks(cluster: Cluster, now_ms: int) -> list[OpenSink]:
    """Return the sinks with open transactions, the oldest first.

    Raises:
        KafkaError: a coordinator does not answer, or the topic of decisions cannot be read.
    """
    listed = cluster.retry(lambda: list_transactions(cluster, states=["Ongoing"]))
    names = [each.transactional_id for each in listed if sink_of(each.transactional_id) is not None]
    found = _by_sink(described(cluster, names, cluster.timeout_ms))
    signs = last_signs(cluster, found, now_ms)
    sinks = [_open_sink(name, mine, signs[name]) for name, mine in found.items()]
    return sorted(sinks, key=lambda each: (each.since_ms, each.name))


def _by_sink(known: Iterable[TransactionDescription]) -> dict[str, list[TransactionDescription]]:
    found: dict[str, list[TransactionDescription]] = defaultdict(list)
    for each in known:
        name = sink_of(each.transactional_id)
        if each.state == "Ongoing" and name is not None:
            found[name].append(each)
    return found


def _open_sink(name: str, transactions: Sequence[TransactionDescription], seen_ms: int) -> OpenSink:
    return OpenSink(
        name,
        len(transactions),
        tuple(sorted({partition.topic for each in transactions for partition in each.partitions})),
        min(each.start_ms or 0 for each in transactions),
        seen_ms,
    )
