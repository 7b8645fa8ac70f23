"""AlterReplicaLogDirs (API key 34, versions 1-2): move replicas to another directory of this broker.

- A replica that is to move to the directory where it is gets no error. A move to another of the broker's directories is
  UNSUPPORTED_VERSION; a directory that the broker does not have is LOG_DIR_NOT_FOUND, one that is offline KAFKA_STORAGE_ERROR.
- Directories are compared as text, in the form that DescribeLogDirs returns.
- The checks have Kafka's order: a topic name too long for the directory of a moving replica, the directory, the replica. A replica
  on other brokers is REPLICA_NOT_AVAILABLE here, not NOT_LEADER_OR_FOLLOWER.
- For a partition that is named more than once the last directory counts, and the response has it once.

Version 2 is flexible.

Sources: KIP-113; `ReplicaManager.alterReplicaLogDirs`, `AlterReplicaLogDirsRequest.partitionDirs`.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.log.offline_directory import OfflineDirectory
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.turns import ELEMENT, pace

_Result = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult

_MAX_NAME = 255
_MOVING_SUFFIX = len(".") + 32 + len("-future")
"""Kafka adds a hexadecimal id and a word to the name of a partition's directory while the replica moves."""


async def handle(context: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Check for each replica whether it is in the requested directory."""
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
            await pace(ELEMENT)
            code = _check(replicas, name, index, path)
            result.partitions.append(_Result(partition_index=index, error_code=code))
    return response


def _check(replicas: ReplicaManager, topic: str, index: int, path: str) -> ErrorCode:
    if len(f"{topic}-{index}") + _MOVING_SUFFIX > _MAX_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    logs = replicas.log_manager
    if all(path != each.root_dir for each in logs.directories):
        return ErrorCode.LOG_DIR_NOT_FOUND
    if any(path == each.root_dir and isinstance(each, OfflineDirectory) for each in logs.directories):
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        replicas.partition(topic, index)
    except KafkaError as error:
        return ErrorCode.REPLICA_NOT_AVAILABLE if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else error.code
    return ErrorCode.NONE if path == logs.directory_of(topic, index).root_dir else ErrorCode.UNSUPPORTED_VERSION
