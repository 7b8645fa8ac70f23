"""The response to a request that fails as a whole.

Kafka has a handwritten `getErrorResponse` for each API. They all do the same: if the response has an error code at the top, set it;
else repeat the request's topics, partitions, groups or keys and set the code on each. This module does that once, from the message
definitions.

- A response field has its request field by name (`_SAME`).
- A plain element of the request (a partition index, a group id) fills the first field of its type.
- The error code is at the outermost level that has one; nothing below that level is filled in. A response with the code at the top
  repeats nothing of the request (a member id, an epoch); `_TOP_AND_BELOW` has two exceptions. OffsetFetch has the code at the top up
  to version 7 and on each group from version 8.
- The response has a message only if it says more than the code's own, as in Kafka's `ApiError`; see `_CODE_WORDS`, `_WORDLESS`.

Nothing is compiled, because requests fail seldom.

Source: `AbstractRequest.getErrorResponse` and its overrides in Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.api.serving.token_requests import no_token
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec, message_spec
from barnabas.security.principal import ANONYMOUS

__all__ = ["error_response"]

R = TypeVar("R")

# Response field → request fields, where the names differ.
_SAME = {
    "responses": ("topic_data", "topics", "resources", "topic_names"),
    "partition_responses": ("partition_data",),
    "results_by_transaction": ("transactions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "coordinators": ("coordinator_keys",),
    "results": ("resources", "topics", "groups_names", "creations", "deletions", "upsertions", "dirs"),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "groups": ("group_ids",),
    "transaction_states": ("transactional_ids",),
    "filter_results": ("filters",),
    "partitions": ("partition_indexes",),
}
# Responses that have the code's own message if there is no better one; in the others Kafka leaves it null.
_CODE_WORDS = frozenset(
    (
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    )
)
# Responses with a message field that is always null.
_WORDLESS = frozenset((ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE))
# Responses with the error at the top and on each requested partition.
_TOP_AND_BELOW = frozenset((ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS))
_CODES = ("error_code", "partition_error_code")
_MESSAGES = ("error_message",)
_SAME_PLAIN = {
    "partition_index": ("index", "partition"),
    "name": ("topic",),
    "topic_name": ("name",),
    "user": ("name",),
}
_UNKNOWN = ("leader_id", "node_id", "base_offset", "high_watermark", "committed_offset", "low_watermark")


def _named_by(spec: StructSpec, source: object) -> str | None:
    """Return the field for a plain element of the request (a partition, a group id, a topic id)."""
    for plain, types in ((int, ("int32", "int8")), (str, ("string",)), (bytes, ("uuid",))):
        if isinstance(source, plain):
            return next((f.name for f in spec.fields if f.type in types and f.name not in _MESSAGES), None)
    return None


def error_response(api_key: int, version: int, request: Any, code: ErrorCode | int, message: str | None = None) -> Any:
    """Build the response to a request that failed as a whole.

    Args:
        request: the decoded request.
        message: used if the response has a field for it.
    """
    if api_key == ApiKey.CREATE_DELEGATION_TOKEN:
        return no_token(version, code, ANONYMOUS, ANONYMOUS)
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
    if api_key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        # Kafka repeats the error for each asked user, without the user's name. Asked for all users it fails and never answers.
        response.error_message = words
        response.results = [
            cls.DescribeUserScramCredentialsResult(error_code=int(code), error_message=words)
            for _ in request.users or ()
        ]
    return response


class _Mirror:
    """Fills structs of one response, in one version, with one error."""

    def __init__(
        self, spec: MessageSpec, cls: type[Message], version: int, code: int, message: str | None, *, goes_below: bool
    ) -> None:
        self._spec = spec
        self._cls = cls
        self._version = version
        self._code = code
        self._message = message
        self._goes_below = goes_below

    def struct(self, spec: StructSpec, cls: Callable[..., R], source: object) -> R:
        fields = {f.name: f for f in spec.fields if self._version in f.versions}
        values: dict[str, object] = {}
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

    def _plain(self, values: dict[str, object], field: FieldSpec, source: object, *, repeated: bool) -> None:
        names = (field.name, *_SAME_PLAIN.get(field.name, ()))
        value = (
            next((v for v in (getattr(source, n, None) for n in names) if v is not None), None) if repeated else None
        )
        if value is not None and not callable(value):
            values[field.name] = value
        elif field.name in _UNKNOWN:
            values[field.name] = -1

    def _array(self, field: FieldSpec, source: object) -> list[object]:
        for name in (field.name, *_SAME.get(field.name, ())):
            elements = getattr(source, name, None)
            if elements:
                break
        else:
            return []
        if name == "dirs":
            # AlterReplicaLogDirs groups its request by directory and its response by topic.
            elements = [topic for directory in elements for topic in directory.topics]
        if name in ("deletions", "upsertions"):
            # AlterUserScramCredentials answers once for each user.
            both = [*getattr(source, "deletions", ()), *getattr(source, "upsertions", ())]
            elements = {each.name: each for each in both}.values()
        struct = self._spec.structs[field.type]
        cls = getattr(self._cls, field.type)
        return [self.struct(struct, cls, element) for element in elements]
