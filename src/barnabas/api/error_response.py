"""An API's own response that carries one error, for a request that fails as a whole. Control plane.

Kafka writes `getErrorResponse` by hand for each of its APIs. They all do one thing: if the response has an error code of
its own, set it; if it has none in this version, mirror the request's topics, partitions, groups or keys and set the code
on each. This module does that thing once, over the message definitions.

- A response field finds its request field by name (`_SAME`), or is the only array that both sides have.
- Elements of the request that are plain (a partition index, a group id) fill the first field of their kind.
- The error code sits at the outermost level that has one; below it nothing is filled in, and a response that has it at the
  top repeats nothing of the request (a member id, an epoch); `_TOP_AND_BELOW` are two exceptions. DescribeCluster and its like
  have one level; OffsetFetch has it at the top up to version 7 and on each group from version 8.
- A sentence goes along only if it says more than the code's own, as Kafka's `ApiError` has it; see `_CODE_WORDS`, `_WORDLESS`.

It runs only when a request fails, so it reads the definitions afresh rather than compile anything.

Source: `AbstractRequest.getErrorResponse` and its overrides in Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec, message_spec

__all__ = ["error_response"]

# Response field → request field, where the two names differ and several arrays could be meant.
_SAME = {
    "responses": ("topic_data", "topics", "resources", "topic_names"),
    "partition_responses": ("partition_data",),
    "results_by_transaction": ("transactions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "coordinators": ("coordinator_keys",),
    "results": ("resources", "topics", "groups_names", "creations", "deletions", "dirs"),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "groups": ("group_ids",),
    "transaction_states": ("transactional_ids",),
    "filter_results": ("filters",),
    "partitions": ("partition_indexes",),
}
# Responses that repeat the code's own words where there are no better ones; Kafka leaves the others null.
_CODE_WORDS = frozenset(
    (
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    )
)
# Responses that have room for words, and never any.
_WORDLESS = frozenset((ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE))
# Responses that say the error at the top and once more for each partition that was asked for.
_TOP_AND_BELOW = frozenset((ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS))
_CODES = ("error_code", "partition_error_code")
_MESSAGES = ("error_message",)
_SAME_PLAIN = {"partition_index": ("index", "partition"), "name": ("topic",), "topic_name": ("name",)}
_UNKNOWN = ("leader_id", "node_id", "base_offset", "high_watermark", "committed_offset", "low_watermark")


def _named_by(spec: StructSpec, source: Any) -> str | None:
    """The field that a plain element of the request (a partition, a group id, a topic id) belongs in."""
    for plain, types in ((int, ("int32", "int8")), (str, ("string",)), (bytes, ("uuid",))):
        if isinstance(source, plain):
            return next((f.name for f in spec.fields if f.type in types and f.name not in _MESSAGES), None)
    return None


def error_response(api_key: int, version: int, request: Any, code: ErrorCode | int, message: str | None = None) -> Any:
    """Build the response to a request that failed as a whole.

    Args:
        request: the decoded request; its topics, groups or keys are named in the answer where the answer has no code of
            its own.
        code: the error.
        message: what is wrong, for responses that have room for it.
    """
    name = api(api_key).name
    spec = message_spec(f"{name}Response")
    cls = getattr(messages, f"{name}Response")
    own = ErrorCode(code).default_message
    words = message if message is not None and message != own else own if api_key in _CODE_WORDS else None
    if api_key in _WORDLESS:
        words = None
    mirror = _Mirror(spec, cls, version, int(code), words, goes_below=api_key in _TOP_AND_BELOW)
    response = mirror.struct(spec.root, cls, request)
    if api_key == ApiKey.METADATA and version < 13 and request.topics is None:
        response.topics = []
    return response


class _Mirror:
    """Fills structs of one response, in one version, with one error."""

    def __init__(
        self, spec: MessageSpec, cls: Any, version: int, code: int, message: str | None, *, goes_below: bool
    ) -> None:
        self._spec = spec
        self._cls = cls
        self._version = version
        self._code = code
        self._message = message
        self._goes_below = goes_below

    def struct(self, spec: StructSpec, cls: Any, source: Any) -> Any:
        fields = {f.name: f for f in spec.fields if self._version in f.versions}
        values: dict[str, Any] = {}
        coded = next((name for name in _CODES if name in fields), None)
        named = _named_by(spec, source)
        for name, field in fields.items():
            if name == coded:
                values[name] = self._code
            elif name in _MESSAGES:
                if self._message is not None:
                    values[name] = self._message
            elif name == named:
                values[name] = source
            elif field.is_array:
                if field.is_struct and (coded is None or self._goes_below):
                    values[name] = self._array(field, source)
            elif not field.is_struct:
                self._plain(values, field, source, repeated=coded is None or spec is not self._spec.root)
        return cls(**values)

    def _plain(self, values: dict[str, Any], field: FieldSpec, source: Any, *, repeated: bool) -> None:
        names = (field.name, *_SAME_PLAIN.get(field.name, ()))
        value = (
            next((v for v in (getattr(source, n, None) for n in names) if v is not None), None) if repeated else None
        )
        if value is not None and not callable(value):
            values[field.name] = value
        elif field.name in _UNKNOWN:
            values[field.name] = -1

    def _array(self, field: FieldSpec, source: Any) -> list[Any]:
        for name in (field.name, *_SAME.get(field.name, ())):
            elements = getattr(source, name, None)
            if elements:
                break
        else:
            return []
        if name == "dirs":
            # AlterReplicaLogDirs asks by directory and is answered by topic.
            elements = [topic for directory in elements for topic in directory.topics]
        struct = self._spec.structs[field.type]
        cls = getattr(self._cls, field.type)
        return [self.struct(struct, cls, element) for element in elements]
