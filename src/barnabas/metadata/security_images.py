"""Access control entries, SCRAM credentials and delegation tokens.

Three small tables of one shape: keyed facts that records add and remove. `security.authorizer` decides by the first of them.

Sources: Kafka's `AclsImage`, `ScramImage`, `DelegationTokenImage`; AccessControlEntryRecord and its removal,
UserScramCredentialRecord and its removal, DelegationTokenRecord and its removal; KIP-801, KIP-900.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.nothing import NOTHING
from barnabas.protocol import messages
from barnabas.security.acls import AclBinding
from barnabas.security.sasl.scram_keys import ScramCredential


class DelegationToken(NamedTuple):
    """A delegation token; principals are texts such as `User:alice`, times epoch milliseconds."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Return whether its time is over, by the wall clock."""
        return self.expiration_timestamp_ms < now_ms or self.max_timestamp_ms < now_ms

    def may_be_renewed_by(self, principal: str) -> bool:
        """Return whether a principal may renew and expire it."""
        return principal == self.owner or principal in self.renewers

    def is_known_to(self, principal: str) -> bool:
        """Return whether a principal sees it without a right."""
        return principal == self.requester or self.may_be_renewed_by(principal)

    def record(self, token_id: str) -> messages.DelegationTokenRecord:
        return messages.DelegationTokenRecord(
            owner=self.owner,
            requester=self.requester,
            renewers=list(self.renewers),
            issue_timestamp=self.issue_timestamp_ms,
            max_timestamp=self.max_timestamp_ms,
            expiration_timestamp=self.expiration_timestamp_ms,
            token_id=token_id,
        )


class AclsImage(NamedTuple):
    entries: Mapping[bytes, AclBinding] = NOTHING

    def records(self) -> Iterator[messages.AccessControlEntryRecord]:
        for entry_id, entry in sorted(self.entries.items()):
            yield messages.AccessControlEntryRecord(id=entry_id, **entry._asdict())


class ScramImage(NamedTuple):
    """Credentials by user and mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512)."""

    credentials: Mapping[tuple[str, int], ScramCredential] = NOTHING

    def records(self) -> Iterator[messages.UserScramCredentialRecord]:
        for (name, mechanism), credential in sorted(self.credentials.items()):
            yield messages.UserScramCredentialRecord(name=name, mechanism=mechanism, **credential._asdict())


class DelegationTokensImage(NamedTuple):
    tokens: Mapping[str, DelegationToken] = NOTHING

    def records(self) -> Iterator[messages.DelegationTokenRecord]:
        for token_id, token in sorted(self.tokens.items()):
            yield token.record(token_id)


class AclsDelta:
    def __init__(self, image: AclsImage) -> None:
        self.image = image
        self.changed: dict[bytes, AclBinding | None] = {}

    def replay(self, record: messages.AccessControlEntryRecord) -> None:
        self.changed[record.id] = AclBinding(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def replay_remove(self, record: messages.RemoveAccessControlEntryRecord) -> None:
        known = record.id in self.changed or record.id in self.image.entries
        assert known, "RemoveAccessControlEntryRecord names an entry that no record has created"
        self.changed[record.id] = None

    def apply(self) -> AclsImage:
        merged = {**self.image.entries, **self.changed}
        return AclsImage({key: value for key, value in merged.items() if value is not None})


class ScramDelta:
    def __init__(self, image: ScramImage) -> None:
        self.image = image
        self.changed: dict[tuple[str, int], ScramCredential | None] = {}

    def replay(self, record: messages.UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self.changed[record.name, record.mechanism] = credential

    def replay_remove(self, record: messages.RemoveUserScramCredentialRecord) -> None:
        self.changed[record.name, record.mechanism] = None

    def apply(self) -> ScramImage:
        merged = {**self.image.credentials, **self.changed}
        return ScramImage({key: value for key, value in merged.items() if value is not None})


class DelegationTokensDelta:
    def __init__(self, image: DelegationTokensImage) -> None:
        self.image = image
        self.changed: dict[str, DelegationToken | None] = {}

    def replay(self, record: messages.DelegationTokenRecord) -> None:
        self.changed[record.token_id] = DelegationToken(
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def replay_remove(self, record: messages.RemoveDelegationTokenRecord) -> None:
        self.changed[record.token_id] = None

    def apply(self) -> DelegationTokensImage:
        merged = {**self.image.tokens, **self.changed}
        return DelegationTokensImage({key: value for key, value in merged.items() if value is not None})
