"""AlterUserScramCredentials: the credentials that check a user's password.

A client sends the salted password, never the password. The controller keeps the two keys that RFC 5802 derives from it. They suffice to
check a login, but not to log in.

    client key = HMAC(salted password, "Client Key")     stored key = H(client key)
    server key = HMAC(salted password, "Server Key")

- A user may appear once in a request, with any mechanism. A second change is DUPLICATE_RESOURCE and cancels the first.
- Deleting an unknown credential is RESOURCE_NOT_FOUND; iterations outside 4096 to 16384 are UNACCEPTABLE_CREDENTIAL.

Sources: Kafka's `ScramControlManager`, `ScramFormatter`, `ScramMechanism`; KIP-554, KIP-900; RFC 5802 section 3.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode

# Mechanism number on the wire to the digest it is named after: SCRAM-SHA-256, SCRAM-SHA-512.
DIGESTS = {1: "sha256", 2: "sha512"}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

_Request = messages.AlterUserScramCredentialsRequest
_TWICE = ApiError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def alter_credentials(
    view: ControllerView, request: _Request
) -> ControllerResult[messages.AlterUserScramCredentialsResponse]:
    """Answer one AlterUserScramCredentials request: deletions first, then upsertions, then what failed."""
    errors: dict[str, ApiError] = {}
    wanted: dict[str, MetadataRecord] = {}
    changes: Sequence[_Request.ScramCredentialDeletion | _Request.ScramCredentialUpsertion]
    changes = [*request.deletions, *request.upsertions]
    for change in changes:
        name = change.name
        if name in errors:
            continue
        if wanted.pop(name, None) is not None:
            errors[name] = _TWICE
            continue
        if isinstance(change, _Request.ScramCredentialDeletion):
            error = _deletion_fault(view, change)
        else:
            error = _upsertion_fault(change)
        if error.code is ErrorCode.NONE:
            wanted[name] = _record(change)
        else:
            errors[name] = error
    result = messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    response = messages.AlterUserScramCredentialsResponse(
        results=[result(user=name, error_code=0, error_message=None) for name in wanted]
        + [result(user=name, error_code=error.code, error_message=error.message) for name, error in errors.items()]
    )
    return ControllerResult(response, list(wanted.values()))


def _name_fault(name: str, mechanism: int) -> ApiError:
    if not name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in DIGESTS:
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return NO_ERROR


def _deletion_fault(view: ControllerView, deletion: _Request.ScramCredentialDeletion) -> ApiError:
    error = _name_fault(deletion.name, deletion.mechanism)
    if error.code is ErrorCode.NONE and (deletion.name, deletion.mechanism) not in view.image.scram.credentials:
        message = "Attempt to delete a user credential that does not exist"
        return ApiError(ErrorCode.RESOURCE_NOT_FOUND, message)
    return error


def _upsertion_fault(upsertion: _Request.ScramCredentialUpsertion) -> ApiError:
    error = _name_fault(upsertion.name, upsertion.mechanism)
    if error.code is not ErrorCode.NONE:
        return error
    if upsertion.iterations < MIN_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return NO_ERROR


def _record(change: _Request.ScramCredentialDeletion | _Request.ScramCredentialUpsertion) -> MetadataRecord:
    if isinstance(change, _Request.ScramCredentialDeletion):
        return messages.RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    digest, salted = DIGESTS[change.mechanism], bytes(change.salted_password)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return messages.UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", digest),
        iterations=change.iterations,
    )
