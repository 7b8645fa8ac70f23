"""Errors of authorization as sentences that say which ACL is missing.

The broker's own words are "Topic authorization failed": they name neither the topic nor the operation. Where a query asks, it knows
both. `docs/spark.md` and `docs/spark-sink.md` list every ACL that a query needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

__all__ = ["Access", "asking", "denied", "is_denied"]

_CODES = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_NOUNS = {"topic": "topic", "group": "group", "transactional-id": "transactional id"}


@dataclass(frozen=True, slots=True)
class Access:
    """One right, as an ACL allows it.

    Attributes:
        operation: as `kafka-acls --operation` takes it.
        kind: its option for the resource, without dashes: `topic`, `group`, `transactional-id`.
        is_prefix: the name is the beginning of many.
    """

    operation: str
    kind: str
    name: str
    is_prefix: bool = False

    def __str__(self) -> str:
        noun = _NOUNS[self.kind]
        return (
            f"{self.operation} on {noun}s that begin with {self.name}"
            if self.is_prefix
            else f"{self.operation} on {noun} {self.name}"
        )

    @property
    def arguments(self) -> str:
        """Return the part of a `kafka-acls` command that names it."""
        pattern = " --resource-pattern-type prefixed" if self.is_prefix else ""
        return f"--operation {self.operation} --{self.kind} {self.name}{pattern}"


def is_denied(error: KafkaError) -> bool:
    """Return whether an ACL is missing."""
    return error.code in _CODES


def denied(error: KafkaError, *needed: Access) -> KafkaError:
    """Return an error of authorization as a sentence with what its user needs; any other error as it is."""
    if not is_denied(error):
        return error
    what = " and ".join(map(str, needed))
    commands = " and ".join(f"`kafka-acls --add --allow-principal User:NAME {each.arguments}`" for each in needed)
    return error_for(error.code, f"this user needs {what}: an administrator allows it with {commands}")


@contextmanager
def asking(*needed: Access) -> Iterator[None]:
    """Say what an error of authorization in this block is about."""
    try:
        yield
    except KafkaError as error:
        raise denied(error, *needed) from None
