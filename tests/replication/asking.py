"""A client's requests in a fetch session, and made results of reading: what the tests of sessions share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from barnabas.protocol.messages import FetchResponse
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.replication.fetch_reader import FetchParams, PartitionLookup, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.fetch_session_cache import FetchContext, FetchSessionCache
from tests.at_once import at_once
from tests.replication.hosting import topic_id


def wants(*names: str, offset: int = 0, by_id: int = 0) -> list[FetchPartition]:
    """`"t-0"` for each partition."""
    made = []
    for name in names:
        topic, _, index = name.rpartition("-")
        made.append(FetchPartition(topic, topic_id(by_id) if by_id else ZERO_UUID, int(index), offset, 1000))
    return made


def ask(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    wanted: list[FetchPartition],
    forgotten: tuple[Hashable, ...] = (),
    *,
    now_ms: int = 0,
    is_follower: bool = False,
    uses_topic_ids: bool = False,
) -> FetchContext:
    asked = cache.context(
        session_id,
        epoch,
        wanted,
        forgotten,
        uses_topic_ids=uses_topic_ids,
        is_follower=is_follower,
        now_ms=now_ms,
    )
    return at_once(asked)


def data_of(wanted: FetchPartition, *, high_watermark: int = 10, records: Any = b"", error: int = 0) -> Any:
    return FetchResponse.PartitionData(
        partition_index=wanted.index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        error_code=error,
    )


def read(*results: tuple[FetchPartition, FetchResponse.PartitionData]) -> Reading:
    """A pass that has read this."""
    reading = Reading(FetchParams(12, -1, 0, 1, 1 << 20, 0), cast("PartitionLookup", None))
    reading.results += results
    return reading


def respond(context: FetchContext, reading: Reading | None, epoch: int) -> FetchResponse:
    return at_once(context.respond(reading, epoch))


def answer(context: FetchContext, epoch: int, **fields: Any) -> FetchResponse:
    return respond(context, read(*((wanted, data_of(wanted, **fields)) for wanted in context.partitions)), epoch)


def open_session(cache: FetchSessionCache, *names: str, **options: Any) -> int:
    return answer(ask(cache, 0, 0, wants(*names), **options), 0).session_id
