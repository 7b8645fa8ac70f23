"""DescribeLogDirs (API key 35, versions 1-5): the replicas in the data directory, and the room on its volume.

- Null topics means all replicas of this broker, an empty list none. A partition without a replica here is left out.
- A partition whose log has not been opened since it was created has size 0. There is one directory and no future log
  (AlterReplicaLogDirs).

Version 2 is flexible, 3 adds a top-level error, 4 the size of the volume (KIP-827), 5 cordoned directories (KIP-1066), here none.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.turns import READ, RECORD, pace

_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


async def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the data directory."""
    replicas = context.services.replica_manager
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for asked in request.topics:
            await pace(RECORD)
            indexes = wanted.setdefault(asked.topic, set())
            for index in asked.partitions:
                await pace(RECORD)
                indexes.add(index)
    topics = []
    for name in list(replicas.topics if wanted is None else wanted):
        await pace(READ)
        topic = replicas.topics.get(name)
        if topic is None:
            continue  # There is no replica here, or not any more.
        found = topic.partitions if wanted is None else wanted[name]
        partitions = [
            _Partition(partition_index=index, partition_size=replicas.size_of(partition))
            for index, partition in topic.partitions.items()
            if index in found
        ]
        if partitions:
            topics.append(DescribeLogDirsResponse.DescribeLogDirsTopic(name=name, partitions=partitions))
    log_dir, total_bytes, usable_bytes = replicas.describe_volume()
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResponse.DescribeLogDirsResult(
                log_dir=log_dir, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
            )
        ]
    )
