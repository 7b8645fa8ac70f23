"""The server-side assignors by name, each imported when a group asks for it (control plane, pure).

Source: Kafka's setting group.consumer.assignors; KIP-848.
"""

from __future__ import annotations

from barnabas.group.consumer.assignor import Assignor
from barnabas.protocol.errors import ErrorCode, KafkaError


def find_assignor(name: str) -> Assignor:
    """The assignor of this name.

    Raises: KafkaError UNSUPPORTED_ASSIGNOR.
    """
    if name == "uniform":
        from barnabas.group.consumer.uniform_assignor import assign_uniform

        return assign_uniform
    if name == "range":
        from barnabas.group.consumer.range_assignor import assign_range

        return assign_range
    raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, f"ServerAssignor {name} is not supported.")
