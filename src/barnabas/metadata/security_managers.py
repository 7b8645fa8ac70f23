"""The managers of protection: access control lists, users of SCRAM, delegation tokens.

`managers` imports this module at the first request that changes one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.metadata.acl_control import create_acls, delete_acls
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.delegation_token_control import create_token, expire_token, renew_token
from barnabas.metadata.scram_control import alter_credentials
from barnabas.protocol.api_keys import ApiKey

__all__ = ["SECURITY_MANAGERS"]

SECURITY_MANAGERS: Mapping[int, Callable[[ControllerView, Any], ControllerResult[Any]]] = {
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.CREATE_DELEGATION_TOKEN: create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: renew_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: expire_token,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_credentials,
}
