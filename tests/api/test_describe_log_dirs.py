from __future__ import annotations

import asyncio

import pytest

from barnabas.api import describe_log_dirs
from barnabas.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.replication.hosting import Hosting, batch

Wanted = list[DescribeLogDirsRequest.DescribableLogDirTopic] | None


def ask(hosting: Hosting, topics: Wanted, version: int = 4) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    request = DescribeLogDirsRequest.decode(DescribeLogDirsRequest(topics=topics).encode(version), version)
    response = asyncio.run(describe_log_dirs.handle(hosting.context(35, version), request))
    (result,) = DescribeLogDirsResponse.decode(response.encode(version), version).results
    assert result.error_code == 0
    return result


def sizes(result: DescribeLogDirsResponse.DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    assert not any(p.is_future_key or p.offset_lag for topic in result.topics for p in topic.partitions)
    return {(topic.name, p.partition_index): p.partition_size for topic in result.topics for p in topic.partitions}


def of(topic: str, *indexes: int) -> DescribeLogDirsRequest.DescribableLogDirTopic:
    return DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=list(indexes))


@pytest.mark.parametrize("version", range(1, 6))
def test_null_topics_mean_all_an_empty_list_none(hosting: Hosting, version: int) -> None:
    hosting.create_topic("t", 2)
    hosting.create_topic("u")
    hosting.append("t", b"a", index=1)
    size = len(batch(b"a"))
    result = ask(hosting, None, version)
    assert result.log_dir == hosting.logs.root_dir
    assert sizes(result) == {("t", 0): 0, ("t", 1): size, ("u", 0): 0}
    assert (result.total_bytes > 0, result.usable_bytes > 0) == (version >= 4, version >= 4)
    assert sizes(ask(hosting, [of("t", 1, 7), of("nowhere", 0)], version)) == {("t", 1): size}
    assert sizes(ask(hosting, [], version)) == {}
