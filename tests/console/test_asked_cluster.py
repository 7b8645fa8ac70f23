"""Clients that are used again, and not after their connection is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.client.admin import Admin
from barnabas.client.errors import ConnectionLost
from barnabas.console.asked_cluster import SEARCHES_AT_ONCE, AskedCluster
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for


def test_searches_do_not_keep_other_questions_waiting() -> None:
    async def ask() -> str:
        cluster = AskedCluster("local", lambda: Admin("127.0.0.1:1"))
        go_on = threading.Event()
        searches = [
            asyncio.create_task(cluster.search(lambda admin: go_on.wait(60))) for _ in range(2 * SEARCHES_AT_ONCE)
        ]
        answer = await cluster.ask(lambda admin: "answered")
        go_on.set()
        assert all(await asyncio.gather(*searches))
        cluster.close()
        return answer

    assert asyncio.run(ask()) == "answered"


def test_a_client_is_used_again_until_it_loses_its_connection() -> None:
    made: list[Admin] = []

    def connect() -> Admin:
        made.append(Admin("127.0.0.1:1"))
        return made[-1]

    def fail(error: KafkaError) -> None:
        raise error

    async def ask() -> list[Admin]:
        cluster = AskedCluster("local", connect)
        first = await cluster.ask(lambda admin: admin)
        with pytest.raises(KafkaError, match="denied"):
            await cluster.ask(lambda admin: fail(error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "denied")))
        second = await cluster.ask(lambda admin: admin)
        with pytest.raises(ConnectionLost):
            await cluster.ask(lambda admin: fail(ConnectionLost("gone")))
        third = await cluster.ask(lambda admin: admin)
        cluster.close()
        return [first, second, third]

    assert asyncio.run(ask()) == [made[0], made[0], made[1]]
