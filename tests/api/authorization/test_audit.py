"""The lines about changes: who, from where, what, and never a secret."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.authorization.audit import ChangeAudit
from barnabas.config.config_table import config_schema
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.protocol.api_keys import api
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.security.acls import AclBinding, AclFilter
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.principal import Principal
from tests.api.served_node import Serving
from tests.api.test_acls import create, delete

AUDIT = "kafka.authorizer.logger"
WHO = "Principal = User:ANONYMOUS from host = 10.0.0.9 has "
RULE = AclBinding(2, "orders", 3, "User:alice", "*", 3, 3)


@pytest.fixture
def audited(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, AUDIT)
    return caplog


@pytest.fixture
def serving(tmp_path: Path, audited: pytest.LogCaptureFixture) -> Iterator[Any]:
    node = Serving(tmp_path)
    node.server.services.authorizer = StandardAuthorizer({"User:ANONYMOUS"})
    audited.clear()
    yield node
    node.close()


def lines(audited: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in audited.records if record.name == AUDIT]
    audited.clear()
    return found


def written(audited: pytest.LogCaptureFixture, request: Any, response: Any) -> list[str]:
    audit = ChangeAudit(config_schema().of(ConfigResourceType.BROKER))
    assert request.API_KEY in audit.apis
    asyncio.run(audit.write(request.API_KEY, request, response, Principal("User", "a\nb"), "::1"))
    found = lines(audited)
    start = "Principal = User:a\\nb from host = 0:0:0:0:0:0:0:1 has "
    end = f" for request = {api(request.API_KEY).name}"
    assert all(line.startswith(start) and line.endswith(end) for line in found), found
    return [line.removeprefix(start).removesuffix(end) for line in found]


def test_acls_that_are_created_and_deleted(serving: Any, audited: pytest.LogCaptureFixture) -> None:
    assert create(serving, RULE, RULE._replace(resource_name=""), RULE._replace(host="10.0.0.7"))[1][0] != "NONE"
    assert lines(audited) == [
        f"{WHO}created ACL ALLOW READ to User:alice from {host} on TOPIC:LITERAL:orders for request = CreateAcls"
        for host in ("*", "10.0.0.7")
    ]
    delete(serving, AclFilter(principal="User:alice", host="*"), AclFilter(principal="User:nobody"))
    assert lines(audited) == [
        f"{WHO}deleted ACL ALLOW READ to User:alice from * on TOPIC:LITERAL:orders for request = DeleteAcls"
    ]


def alter(name: str, value: str | None, operation: int = 0, kind: int = 2, resource: str = "orders") -> Any:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=operation, value=value)
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=[config]
    )


def test_settings_that_a_client_changes(serving: Any, audited: pytest.LogCaptureFixture) -> None:
    serving.create_topic("orders")
    resources = [alter("retention.ms", "1000"), alter("retention.ms", "1", resource="none")]
    serving.ask(IncrementalAlterConfigsRequest(resources=resources))
    assert lines(audited) == [
        f"{WHO}altered settings of topic orders: retention.ms=1000 for request = IncrementalAlterConfigs"
    ]
    serving.ask(IncrementalAlterConfigsRequest(resources=[alter("retention.ms", None, 1)], validate_only=True))
    assert lines(audited) == []
    config = AlterConfigsRequest.AlterableConfig(name="segment.ms", value="5000")
    replaced = AlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])
    serving.ask(AlterConfigsRequest(resources=[replaced]))
    assert lines(audited) == [f"{WHO}replaced the settings of topic orders: segment.ms=5000 for request = AlterConfigs"]


def test_a_change_of_the_node_itself_is_nobodys(serving: Any, audited: pytest.LogCaptureFixture) -> None:
    request = IncrementalAlterConfigsRequest(resources=[alter("num.io.threads", "3", kind=4, resource="")])

    async def ask() -> Any:
        return await serving.server.services.controller.handle(request.API_KEY, 1, request)

    assert serving.loop.run_until_complete(ask()).responses[0].error_code == 0
    assert lines(audited) == []


def test_a_client_that_goes_away_is_audited(serving: Any, audited: pytest.LogCaptureFixture) -> None:
    """The change is committed, though nobody takes the response."""
    serving.create_topic("orders")
    body = IncrementalAlterConfigsRequest(resources=[alter("retention.ms", "1000")])
    commit: asyncio.Future[None] = serving.loop.create_future()

    async def late(
        key: int, version: int, request: Message, principal: Principal, host: str, then: Callable[[Message], Any]
    ) -> Any:
        await commit
        return await then(request)

    async def ask_and_leave() -> None:
        serving.node.quorum.local_controller.guard = late
        header = b"\x00\x2c\x00\x01\x00\x00\x00\x07\x00\x04test\x00"
        _, answer = serving.dispatcher.dispatch(serving.connection, memoryview(header + body.encode(1)))
        answer.cancel()
        await asyncio.sleep(0)
        commit.set_result(None)
        while not any(record.name == AUDIT for record in audited.records):
            await asyncio.sleep(0)

    serving.loop.run_until_complete(ask_and_leave())
    assert lines(audited) == [
        f"{WHO}altered settings of topic orders: retention.ms=1000 for request = IncrementalAlterConfigs"
    ]


def test_operations_on_settings_and_secret_values(audited: pytest.LogCaptureFixture) -> None:
    changes = [("log.cleanup.policy", "compact", 2), ("log.retention.ms", None, 1), ("ssl.key.password", "hunter2", 0)]
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=operation, value=value)
        for name, value, operation in [*changes, ("my.secret", "hunter2", 3)]
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
    changed = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(resource_type=4, resource_name="")
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert written(audited, request, IncrementalAlterConfigsResponse(responses=[changed])) == [
        "altered settings of broker default: log.cleanup.policy+=compact, log.retention.ms removed, "
        "ssl.key.password=[hidden], my.secret-=[hidden]"
    ]


def test_users_that_are_set_and_deleted(serving: Any, audited: pytest.LogCaptureFixture) -> None:
    kinds = AlterUserScramCredentialsRequest
    upsertion = kinds.ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=b"salt-of-hers", salted_password=b"hunter2" * 9 + b"x"
    )
    serving.ask(kinds(upsertions=[upsertion], deletions=[kinds.ScramCredentialDeletion(name="bob", mechanism=1)]))
    end = "for request = AlterUserScramCredentials"
    assert lines(audited) == [f"{WHO}set the SCRAM-SHA-512 credential of user alice {end}"]
    serving.ask(kinds(deletions=[kinds.ScramCredentialDeletion(name="alice", mechanism=2)]))
    assert lines(audited) == [f"{WHO}deleted the SCRAM-SHA-512 credential of user alice {end}"]


def test_quotas(audited: pytest.LogCaptureFixture) -> None:
    kinds = AlterClientQuotasRequest
    ops = [kinds.OpData(key="producer_byte_rate", value=1e6), kinds.OpData(key="request_percentage", remove=True)]
    entries, answers = [], []
    for user, code in (("alice", 0), (None, 42)):
        parts = [("user", user), ("client-id", None)]
        entity = [kinds.EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        entries.append(kinds.EntryData(entity=entity, ops=ops))
        entity_of_answer = [
            AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in parts
        ]
        answers.append(AlterClientQuotasResponse.EntryData(error_code=code, entity=entity_of_answer))
    assert written(audited, kinds(entries=entries), AlterClientQuotasResponse(entries=answers)) == [
        "altered quotas of client-id default, user alice: producer_byte_rate=1e+06, request_percentage removed"
    ]


def test_tokens(audited: pytest.LogCaptureFixture) -> None:
    made = CreateDelegationTokenResponse(
        principal_type="User", principal_name="alice", token_id="T1", hmac=b"hunter2", expiry_timestamp_ms=17
    )
    assert written(audited, CreateDelegationTokenRequest(), made) == [
        "created delegation token T1 of User:alice, which expires at 17"
    ]
    renewed, expired = RenewDelegationTokenRequest(hmac=b"hunter2"), ExpireDelegationTokenRequest(hmac=b"hunter2")
    assert written(audited, renewed, RenewDelegationTokenResponse(expiry_timestamp_ms=18)) == [
        "renewed a delegation token, which expires at 18"
    ]
    assert written(audited, expired, ExpireDelegationTokenResponse(expiry_timestamp_ms=18)) == [
        "changed the end of a delegation token, which expires at 18"
    ]
    assert written(audited, expired, ExpireDelegationTokenResponse(error_code=62)) == []
