"""What a client of a cluster knows of leaders."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import ListOffsetsRequest, ListOffsetsResponse, MetadataResponse
from tests.simulation.client import Client
from tests.simulation.cluster_client import ClusterClient, NobodyToAsk


def metadata(leader: int, epoch: int) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=leader, host="a", port=1)],
        topics=[MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])],
    )


def test_a_client_follows_no_older_leader_and_names_the_epoch_of_the_one_it_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that does not know its successor would answer with an end that has been passed (KIP-320)."""
    answers: list[Any] = [metadata(1, 5), ConnectionError(), metadata(2, 4), metadata(1, 6), ListOffsetsResponse()]
    asked: list[int] = []

    async def request(_: Client, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        if key is ApiKey.LIST_OFFSETS:
            asked.append(message.topics[0].partitions[0].current_leader_epoch)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Client, "request", request)
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0)
    message = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])])

    async def story() -> None:
        client = ClusterClient([("a", 1)], "c", random.Random(1))
        for expected in (ConnectionError, NobodyToAsk):
            with pytest.raises(expected):
                await client.request(ApiKey.LIST_OFFSETS, 5, message, ListOffsetsResponse)
        await client.request(ApiKey.LIST_OFFSETS, 5, message, ListOffsetsResponse)

    asyncio.run(story())
    assert asked == [5, 6]
