"""DescribeLogDirs (API key 35, versions 1-5): the replicas in each data directory, and the room on its volume.

- Null topics means all replicas of this broker, an empty list none. A partition without a replica here is left out.
- A partition whose log has not been opened since it was created has size 0.
- A replica that moves (AlterReplicaLogDirs) is in both directories. In the new one it is a future replica, with how many offsets it lags.
- A directory that is offline has KAFKA_STORAGE_ERROR, no replicas, and no sizes.

Version 2 is flexible, 3 adds a top-level error, 4 the size of the volume (KIP-827), 5 cordoned directories (KIP-1066).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.log.offline_directory import OfflineDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.replication.partition import Partition
from barnabas.turns import READ, RECORD, pace

_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition
_Topic = DescribeLogDirsResponse.DescribeLogDirsTopic


async def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the data directories."""
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
    volumes = list(replicas.describe_volumes())
    # By the directory's place among them, and by topic.
    found: list[dict[str, _Topic]] = [{} for _ in volumes]
    places = {directory.root_dir: number for number, (directory, _, _) in enumerate(volumes)}
    for name in list(replicas.topics if wanted is None else wanted):
        await pace(READ)
        topic = replicas.topics.get(name)
        if topic is None:
            continue  # There is no replica here, or not any more.
        asked_for = topic.partitions if wanted is None else wanted[name]
        for index, partition in topic.partitions.items():
            if index in asked_for and partition.lost is None:
                there = found[places[replicas.log_manager.directory_of(name, index).root_dir]]
                there.setdefault(name, _Topic(name=name)).partitions.append(
                    _Partition(partition_index=index, partition_size=replicas.size_of(partition))
                )
                moving = None if replicas.moves is None else replicas.moves.future_of(partition)
                if moving is not None:
                    there = found[places[moving[0].root_dir]]
                    there.setdefault(name, _Topic(name=name)).partitions.append(_future(partition, moving[1]))
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResponse.DescribeLogDirsResult(
                error_code=ErrorCode.KAFKA_STORAGE_ERROR if isinstance(directory, OfflineDirectory) else ErrorCode.NONE,
                log_dir=directory.root_dir,
                topics=list(topics.values()),
                total_bytes=total,
                usable_bytes=usable,
                is_cordoned=directory.is_cordoned,
            )
            for (directory, total, usable), topics in zip(volumes, found, strict=True)
        ]
    )


def _future(partition: Partition, future: PartitionLog) -> _Partition:
    lag = partition.log.log_end_offset - future.log_end_offset
    return _Partition(
        partition_index=partition.index,
        partition_size=future.size_in_bytes,
        offset_lag=max(lag, 0),
        is_future_key=True,
    )
