"""DescribeUserScramCredentials (API key 50, version 0): users' SCRAM mechanisms and iterations.

- Never keys or salt. An empty or null list of users means all.
- A user named twice is DUPLICATE_RESOURCE, one without credentials RESOURCE_NOT_FOUND.

Version 0 is flexible (KIP-554).

Source: Kafka's `ScramImage.describe`.
"""

from __future__ import annotations

from collections import Counter

from barnabas.api.serving.context import AnyContext
from barnabas.metadata.security_images import ScramImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
from barnabas.turns import ELEMENT, is_long

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
_Info = DescribeUserScramCredentialsResponse.CredentialInfo


async def handle(
    context: AnyContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    scram = context.services.image().scram
    if context.is_long or is_long(len(scram.credentials) * ELEMENT):
        return await context.services.loop.run_in_executor(None, _describe, scram, request)
    return _describe(scram, request)


def _describe(scram: ScramImage, request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    by_user: dict[str, list[_Info]] = {}
    for (name, mechanism), credential in sorted(scram.credentials.items()):
        by_user.setdefault(name, []).append(_Info(mechanism=mechanism, iterations=credential.iterations))
    asked = Counter(user.name for user in request.users) if request.users else Counter(by_user.keys())
    return DescribeUserScramCredentialsResponse(
        results=[_described(name, times, by_user) for name, times in asked.items()]
    )


def _described(name: str, times: int, by_user: dict[str, list[_Info]]) -> _Result:
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _Result(user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message)
    if name not in by_user:
        message = f"Attempt to describe a user credential that does not exist: {name}"
        return _Result(user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message)
    return _Result(user=name, credential_infos=by_user[name])
