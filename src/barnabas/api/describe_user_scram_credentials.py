"""DescribeUserScramCredentials (API key 50, version 0): users' SCRAM mechanisms and iterations.

- Never keys or salt. An empty or null list of users means all.
- A user named twice is DUPLICATE_RESOURCE, one without credentials RESOURCE_NOT_FOUND.

Version 0 is flexible (KIP-554).

Source: Kafka's `ScramImage.describe`.
"""

from __future__ import annotations

from collections import Counter

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
from barnabas.turns import ELEMENT, RECORD, pace

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
_Info = DescribeUserScramCredentialsResponse.CredentialInfo


async def handle(
    context: AnyContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    by_user: dict[str, list[_Info]] = {}
    for (name, mechanism), credential in sorted(context.services.image().scram.credentials.items()):
        await pace(RECORD)
        by_user.setdefault(name, []).append(_Info(mechanism=mechanism, iterations=credential.iterations))
    asked = Counter[str](() if request.users else by_user.keys())
    for user in request.users or ():
        await pace(RECORD)
        asked[user.name] += 1
    response = DescribeUserScramCredentialsResponse()
    for name, times in asked.items():
        await pace(ELEMENT)
        response.results.append(_described(name, times, by_user))
    return response


def _described(name: str, times: int, by_user: dict[str, list[_Info]]) -> _Result:
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _Result(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)
    if name not in by_user:
        message = f"Attempt to describe a user credential that does not exist: {name}"
        return _Result(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message)
    return _Result(user=name, credential_infos=by_user[name])
