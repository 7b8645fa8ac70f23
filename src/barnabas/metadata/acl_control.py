"""CreateAcls and DeleteAcls: the access control lists in the metadata log.

- Each creation is checked by itself; the others go on. One that exists already, or twice in the request, succeeds without a record.
- A range of addresses needs metadata.version 4.4-IV1: UNSUPPORTED_VERSION below it. Other hosts are not looked at.
- All records of a request are one atomic change: more than 10,000 creations are POLICY_VIOLATION, more than 10,000 deletions
  INVALID_REQUEST, and nothing changes.
- An ACL that two filters select is in the answers to both.

A creation with ANY, or with the pattern MATCH, is INVALID_REQUEST here as any other; Kafka's parser fails at it, and with it every
creation of the request.

Sources: Kafka's `AclControlManager`, `AclApis`; KIP-801.
"""

from __future__ import annotations

from barnabas.metadata.controller_view import (
    MAX_RECORDS_PER_REQUEST,
    NO_ERROR,
    ApiError,
    ControllerResult,
    ControllerView,
)
from barnabas.metadata.metadata_version import CIDR_ACLS_SINCE
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.metadata_versions import NAMES
from barnabas.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
    known,
)
from barnabas.security.hosts import parse_range

__all__ = ["create_acls", "delete_acls"]

_Result = messages.CreateAclsResponse.AclCreationResult
_FilterResult = messages.DeleteAclsResponse.DeleteAclsFilterResult
_Matching = messages.DeleteAclsResponse.DeleteAclsMatchingAcl


def create_acls(
    view: ControllerView, request: messages.CreateAclsRequest
) -> ControllerResult[messages.CreateAclsResponse]:
    """Answer one CreateAcls request.

    Raises:
        KafkaError: POLICY_VIOLATION: the change does not fit one batch.
    """
    takes_ranges = (view.image.features.metadata_version or 0) >= CIDR_ACLS_SINCE
    existing = set(view.image.acls.entries.values())
    records: list[MetadataRecord] = []
    results = []
    for creation in request.creations:
        acl = AclBinding(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        error = _fault(acl, takes_ranges)
        if error.code is ErrorCode.NONE and acl not in existing:
            existing.add(acl)
            records.append(messages.AccessControlEntryRecord(id=view.new_uuid(), **acl._asdict()))
        results.append(_Result(error_code=error.code, error_message=error.message))
    if len(records) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return ControllerResult(messages.CreateAclsResponse(results=results), records)


def _fault(acl: AclBinding, takes_ranges: bool) -> ApiError:
    why = _pattern_fault(acl) or _entry_fault(acl)
    if why is not None:
        return ApiError(ErrorCode.INVALID_REQUEST, why)
    if "/" not in acl.host:
        return NO_ERROR
    if not takes_ranges:
        since = NAMES[CIDR_ACLS_SINCE]
        message = f"CIDR-based ACL host patterns require metadata version {since} or higher."
        return ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
    try:
        parse_range(acl.host)
    except ValueError as error:
        return ApiError(ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{acl.host}': {error}")
    return NO_ERROR


def _pattern_fault(acl: AclBinding) -> str | None:
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    resource_type = known(ResourceType, acl.resource_type)
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"Invalid resourceType {resource_type.name}"
    pattern_type = known(PatternType, acl.pattern_type)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {pattern_type.name}"
    return None


def _entry_fault(acl: AclBinding) -> str | None:
    operation = known(AclOperation, acl.operation)
    if operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        return f"Invalid operation {operation.name}"
    permission = known(Permission, acl.permission_type)
    if permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {permission.name}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type from the "
            "principal name)"
        )
    return "Host pattern cannot be null or empty" if not acl.host else None


def delete_acls(
    view: ControllerView, request: messages.DeleteAclsRequest
) -> ControllerResult[messages.DeleteAclsResponse]:
    """Answer one DeleteAcls request.

    Raises:
        KafkaError: INVALID_REQUEST: the filters select too many.
    """
    deleted: set[bytes] = set()
    results = []
    for each in request.filters:
        acl_filter = AclFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        why = _filter_fault(acl_filter)
        if why is not None:
            results.append(_FilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=why))
            continue
        selected = {key: acl for key, acl in view.image.acls.entries.items() if acl_filter.matches(acl)}
        deleted.update(selected)
        results.append(_FilterResult(error_message=None, matching_acls=[_matching(acl) for acl in selected.values()]))
    if len(deleted) > MAX_RECORDS_PER_REQUEST:
        message = f"Cannot remove more than {MAX_RECORDS_PER_REQUEST} acls in a single delete operation."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    records: list[MetadataRecord] = [messages.RemoveAccessControlEntryRecord(id=key) for key in sorted(deleted)]
    return ControllerResult(messages.DeleteAclsResponse(filter_results=results), records)


def _filter_fault(acl_filter: AclFilter) -> str | None:
    if 0 in (known(ResourceType, acl_filter.resource_type), known(PatternType, acl_filter.pattern_type)):
        return "Unknown patternFilter."
    if 0 in (known(AclOperation, acl_filter.operation), known(Permission, acl_filter.permission_type)):
        return "Unknown entryFilter."
    return None


def _matching(acl: AclBinding) -> _Matching:
    return _Matching(error_message=None, **acl._asdict())
