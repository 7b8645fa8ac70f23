"""AlterReplicaLogDirs (34): in which directory of this broker a replica is to lie. Data plane.

Versions: 1-2. Flexible from 2.

Behaviour:

- A broker has one data directory, so a replica is either there already, which is no error, or asked into a directory that the broker
  does not have: LOG_DIR_NOT_FOUND. Directories are compared as they are written, as DescribeLogDirs gives them.
- The checks are made in Kafka's order: a topic whose name leaves no room for the name of a directory of a replica that moves, the
  directory, the replica. A replica of other brokers is REPLICA_NOT_AVAILABLE here, not NOT_LEADER_OR_FOLLOWER.
- A partition that is named more than once is answered once, for the directory named last.

Version notes: 2 flexible.

Sources: KIP-113; `ReplicaManager.alterReplicaLogDirs`, `AlterReplicaLogDirsRequest.partitionDirs`.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from barnabas.replication.replica_manager import ReplicaManager

_MAX_NAME = 255
_MOVING_SUFFIX = len(".") + 32 + len("-future")
"""What Kafka appends to the name of a partition's directory while the replica moves: an id in hexadecimal, and a word."""


def handle(context: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Say of each replica whether it is where it should be."""
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, directory.path))
    replicas = context.services.replica_manager
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_check(replicas, name, index, path)
                    )
                    for index, path in partitions.items()
                ],
            )
            for name, partitions in wanted.items()
        ]
    )


def _check(replicas: ReplicaManager, topic: str, index: int, path: str) -> ErrorCode:
    if len(f"{topic}-{index}") + _MOVING_SUFFIX > _MAX_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != replicas.log_manager.root_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        replicas.partition(topic, index)
    except KafkaError as error:
        return ErrorCode.REPLICA_NOT_AVAILABLE if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else error.code
    return ErrorCode.NONE
