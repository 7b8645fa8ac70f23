"""The server-side assignors by name.

Source: Kafka's setting group.consumer.assignors; KIP-848.
"""

from __future__ import annotations

from barnabas.group.consumer.assignor import Assignor
from barnabas.group.consumer.range_assignor import assign_range
from barnabas.group.consumer.uniform_assignor import assign_uniform
from barnabas.protocol.errors import ErrorCode, KafkaError

_ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def find_assignor(name: str) -> Assignor:
    """Return the assignor of a name.

    Raises: KafkaError UNSUPPORTED_ASSIGNOR.
    """
    if name not in _ASSIGNORS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, f"ServerAssignor {name} is not supported.")
    return _ASSIGNORS[name]
