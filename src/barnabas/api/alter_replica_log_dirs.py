"""AlterReplicaLogDirs (API key 34, versions 1-2): move replicas to another directory of this broker.

- The response comes when the move has begun; DescribeLogDirs shows how far it is (`directory_moves`). The directory where the replica is
  ends a move that is under way. A directory that the broker does not have is LOG_DIR_NOT_FOUND, one that is offline KAFKA_STORAGE_ERROR,
  one that is cordoned INVALID_REPLICA_ASSIGNMENT (KIP-1066).
- A replica that is not here yet is REPLICA_NOT_AVAILABLE, and the broker remembers the directory for it.
- Directories are compared as text, in the form that DescribeLogDirs returns.
- The checks have Kafka's order: a topic name too long for the directory of a moving replica, the directory, the replica. A replica
  on other brokers is REPLICA_NOT_AVAILABLE here, not NOT_LEADER_OR_FOLLOWER.
- For a partition that is named more than once the last directory counts, and the response has it once.

Version 2 is flexible.

Sources: KIP-113; `ReplicaManager.alterReplicaLogDirs`, `AlterReplicaLogDirsRequest.partitionDirs`.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.log.log_directories import LogDirectories
from barnabas.log.log_manager import LogManager
from barnabas.log.offline_directory import OfflineDirectory
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.turns import ELEMENT, LOG_OPENED, pace

_Result = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult

_MAX_NAME = 255
_MOVING_SUFFIX = len(".") + 32 + len("-future")
"""Kafka adds a hexadecimal id and a word to the name of a partition's directory while the replica moves."""


async def handle(context: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Begin to move each replica that is not in the requested directory."""
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        await pace(ELEMENT)
        for topic in directory.topics:
            await pace(ELEMENT)
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, directory.path))
    replicas = context.services.replica_manager
    response = AlterReplicaLogDirsResponse()
    for name, partitions in wanted.items():
        await pace(ELEMENT)
        result = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(topic_name=name)
        response.results.append(result)
        for index, path in partitions.items():
            await pace(ELEMENT if replicas.moves is None else LOG_OPENED)
            code = _move(replicas, name, index, path)
            result.partitions.append(_Result(partition_index=index, error_code=code))
    return response


def _move(replicas: ReplicaManager, topic: str, index: int, path: str) -> ErrorCode:
    if len(f"{topic}-{index}") + _MOVING_SUFFIX > _MAX_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    logs = replicas.log_manager
    if all(path != each.root_dir for each in logs.directories):
        return ErrorCode.LOG_DIR_NOT_FOUND
    directory = next(each for each in logs.directories if each.root_dir == path)
    if isinstance(directory, OfflineDirectory):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if directory.is_cordoned:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    try:
        partition = replicas.partition(topic, index)
    except KafkaError as error:
        _remember(replicas, topic, index, directory)
        return ErrorCode.REPLICA_NOT_AVAILABLE if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else error.code
    try:
        if replicas.moves is not None:
            replicas.moves.begin(partition, directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def _remember(replicas: ReplicaManager, topic: str, index: int, directory: LogManager) -> None:
    """Let a replica that is not here yet be made in a directory."""
    if isinstance(replicas.log_manager, LogDirectories):
        replicas.log_manager.prefer(topic, index, directory)
