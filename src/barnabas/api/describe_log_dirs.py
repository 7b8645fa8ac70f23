"""DescribeLogDirs (35): what lies in the data directory, and how much room its volume has. Data plane.

Versions: 1-5. Flexible from 2.

Behaviour:

- Null topics means all replicas of this broker; an empty list none. A partition that is not here is left out.
- A partition whose log has never been opened since it was created has size 0. There are no future logs (AlterReplicaLogDirs), and a
  single directory.

Version notes: 2 flexible, 3 a top-level error, 4 size of the volume (KIP-827), 5 cordoned directories (KIP-1066), never here.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the one directory."""
    replicas = context.services.replica_manager
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    topics = []
    for name, topic in replicas.topics.items():
        partitions = [
            _Partition(partition_index=index, partition_size=replicas.size_of(partition))
            for index, partition in topic.partitions.items()
            if wanted is None or (name, index) in wanted
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
