"""The audit: lines on the logger `kafka.authorizer.logger`, of three kinds.

    decision       Principal = User:a is Denied operation = WRITE from host = 10.0.0.7 on resource = Topic:LITERAL:t …
    failed login   Failed login from host = 10.0.0.7 on listener = SASL_SSL: failed authentication by PLAIN: … user a
    change         Principal = User:a from host = 10.0.0.7 has created ACL … for request = CreateAcls

The first kind is Kafka's (`asker`), the second `net/secured_connection`'s. The third is here: a line for each change of ACLs, users,
delegation tokens, quotas and settings.

- The active controller writes it, after the change is committed and before its response leaves: once in a cluster, on whichever node the
  client asked. A change whose client closes the connection has its line too.
- What the controller or the authorizer has rejected, and what was only validated, is no change.
- No line has a secret: of users it has names and mechanisms, of settings names and values, of secret settings the names alone, of tokens
  no HMAC.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType
from barnabas.metadata.security_settings import HIDDEN, is_secret
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.security.acls import AclOperation, PatternType, Permission, ResourceType, name_of
from barnabas.security.hosts import java_address
from barnabas.turns import RECORD, pace
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.protocol.message import Message
    from barnabas.protocol.messages import (
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        AlterConfigsRequest,
        AlterConfigsResponse,
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        CreateAclsRequest,
        CreateAclsResponse,
        CreateDelegationTokenResponse,
        DeleteAclsResponse,
        ExpireDelegationTokenResponse,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        RenewDelegationTokenResponse,
    )
    from barnabas.security.principal import Principal

    Token = CreateDelegationTokenResponse | ExpireDelegationTokenResponse | RenewDelegationTokenResponse

__all__ = ["AUDIT", "ChangeAudit"]

AUDIT = logging.getLogger("kafka.authorizer.logger")

_LINE_COST = 20 * RECORD
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_SET = {0: "=", 1: " removed", 2: "+=", 3: "-="}
"""The operations of IncrementalAlterConfigs on a setting."""


class ChangeAudit:
    """Writes a line for each change that a client's request has made.

    Args:
        keys: the brokers' settings, which tell which are secret.

    Attributes:
        apis: the requests that may make such a change.
    """

    apis = frozenset(
        {
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.ALTER_CLIENT_QUOTAS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        }
    )

    def __init__(self, keys: Mapping[str, ConfigKey]) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"<ChangeAudit apis={len(self.apis)}>"

    async def write(self, api_key: int, request: Message, response: Message, principal: Principal, host: str) -> None:
        """Write the lines of one request.

        Args:
            response: the controller's; its errors tell what was not changed.
            host: the client's address.
        """
        if not AUDIT.isEnabledFor(logging.INFO) or getattr(request, "validate_only", False):
            return
        for change in self._changes(api_key, request, response):
            await pace(_LINE_COST)
            AUDIT.info(
                "Principal = %s from host = %s has %s for request = %s",
                printable(str(principal)),
                printable(java_address(host)),
                change,
                api(api_key).name,
            )

    def _changes(self, api_key: int, request: Message, response: Message) -> Iterator[str]:
        if api_key == ApiKey.CREATE_ACLS:
            return _created_acls(cast("CreateAclsRequest", request), cast("CreateAclsResponse", response))
        if api_key == ApiKey.DELETE_ACLS:
            return _deleted_acls(cast("DeleteAclsResponse", response))
        if api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS:
            altered = cast("IncrementalAlterConfigsResponse", response)
            return self._settings(cast("IncrementalAlterConfigsRequest", request), altered, is_incremental=True)
        if api_key == ApiKey.ALTER_CONFIGS:
            replaced = cast("AlterConfigsResponse", response)
            return self._settings(cast("AlterConfigsRequest", request), replaced, is_incremental=False)
        if api_key == ApiKey.ALTER_CLIENT_QUOTAS:
            return _quotas(cast("AlterClientQuotasRequest", request), cast("AlterClientQuotasResponse", response))
        if api_key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            users = cast("AlterUserScramCredentialsRequest", request)
            return _users(users, cast("AlterUserScramCredentialsResponse", response))
        return _token(api_key, cast("Token", response))

    def _settings(
        self,
        request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
        response: AlterConfigsResponse | IncrementalAlterConfigsResponse,
        *,
        is_incremental: bool,
    ) -> Iterator[str]:
        changed = {(each.resource_type, each.resource_name) for each in response.responses if not each.error_code}
        for resource in request.resources:
            if (resource.resource_type, resource.resource_name) not in changed:
                continue
            name = f"{_kind(resource.resource_type)} {printable(resource.resource_name) or 'default'}"
            settings = ", ".join(self._setting(each, resource.resource_type) for each in resource.configs)
            if is_incremental:
                yield f"altered settings of {name}: {settings}"
            else:
                # AlterConfigs replaces all of them.
                yield f"replaced the settings of {name}: {settings or 'none'}"

    def _setting(
        self, config: AlterConfigsRequest.AlterableConfig | IncrementalAlterConfigsRequest.AlterableConfig, kind: int
    ) -> str:
        operation = _SET.get(getattr(config, "config_operation", 0), "=")
        name = printable(config.name)
        if operation == " removed" or config.value is None:
            return f"{name} removed"
        is_hidden = kind == ConfigResourceType.BROKER and is_secret(config.name, self._keys)
        return f"{name}{operation}{HIDDEN if is_hidden else printable(config.value)}"


def _kind(number: int) -> str:
    try:
        return ConfigResourceType(number).name.lower().replace("_", "-")
    except ValueError:
        return f"resource type {number}"


def _created_acls(request: CreateAclsRequest, response: CreateAclsResponse) -> Iterator[str]:
    for each, result in zip(request.creations, response.results, strict=True):
        if not result.error_code:
            yield f"created ACL {_acl(each, each.resource_pattern_type)}"


def _deleted_acls(response: DeleteAclsResponse) -> Iterator[str]:
    for result in response.filter_results:
        for each in result.matching_acls:
            if not (result.error_code or each.error_code):
                yield f"deleted ACL {_acl(each, each.pattern_type)}"


def _acl(rule: CreateAclsRequest.AclCreation | DeleteAclsResponse.DeleteAclsMatchingAcl, pattern: int) -> str:
    what = f"{name_of(Permission, rule.permission_type)} {name_of(AclOperation, rule.operation)}"
    kind, how = name_of(ResourceType, rule.resource_type), name_of(PatternType, pattern)
    return f"{what} to {printable(rule.principal)} from {printable(rule.host)} on {kind}:{how}:{printable(rule.resource_name)}"


def _users(request: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse) -> Iterator[str]:
    changed = {each.user for each in response.results if not each.error_code}
    named = [("deleted", each.name, each.mechanism) for each in request.deletions]
    named += [("set", each.name, each.mechanism) for each in request.upsertions]
    for word, name, mechanism in named:
        if name in changed:
            yield f"{word} the {_MECHANISMS.get(mechanism, str(mechanism))} credential of user {printable(name)}"


def _quotas(request: AlterClientQuotasRequest, response: AlterClientQuotasResponse) -> Iterator[str]:
    changed = {_entity(each.entity) for each in response.entries if not each.error_code}
    for entry in request.entries:
        entity = _entity(entry.entity)
        if entity in changed:
            limits = ", ".join(
                f"{printable(op.key)} removed" if op.remove else f"{printable(op.key)}={op.value:g}" for op in entry.ops
            )
            yield f"altered quotas of {entity}: {limits}"


def _entity(parts: Iterable[AlterClientQuotasRequest.EntityData | AlterClientQuotasResponse.EntityData]) -> str:
    names = (f"{each.entity_type} {'default' if each.entity_name is None else each.entity_name}" for each in parts)
    return printable(", ".join(sorted(names)))


def _token(api_key: int, response: Token) -> Iterator[str]:
    if response.error_code:
        return
    ends = f"which expires at {response.expiry_timestamp_ms}"
    if api_key == ApiKey.CREATE_DELEGATION_TOKEN:
        made = cast("CreateDelegationTokenResponse", response)
        owner = printable(f"{made.principal_type}:{made.principal_name}")
        yield f"created delegation token {printable(made.token_id)} of {owner}, {ends}"
    elif api_key == ApiKey.RENEW_DELEGATION_TOKEN:
        yield f"renewed a delegation token, {ends}"
    else:
        yield f"changed the end of a delegation token, {ends}"
