"""Random connections over one small memory: each is answered in order or closed, and all memory comes back."""

from __future__ import annotations

import asyncio
import random

import pytest

from barnabas.net.request_memory import RequestMemory
from tests.net.scripted_dispatcher import FETCH, METADATA, PRODUCE, request, response
from tests.net.test_connection_states import Peer

LIMITS = (1, 200_000, 2_000_000, 20_000_000)
SIZES = (0, 10, 1000, 60_000, 70_000, 300_000, 1_000_000, 2_200_000, 3_000_000)
PIECES = (1, 7, 70_000, 1 << 20)


class Client:
    """A client that sends random requests in random pieces."""

    def __init__(self, random_: random.Random, loop: asyncio.AbstractEventLoop, memory: RequestMemory) -> None:
        self._random = random_
        self.peer = Peer(loop, memory)
        self.peer.serve()
        self.sent: list[int] = []
        self._unsent = b""

    @property
    def is_whole(self) -> bool:
        return not self._unsent

    @property
    def is_closed(self) -> bool:
        return self.peer.transport.is_closed

    def begin(self) -> None:
        """Begin a request, if the one before has left."""
        if not self._unsent:
            self.sent.append(len(self.sent) + 1)
            body = self._random.choice([b"wait", bytes(self._random.choice(SIZES))])
            self._unsent = request(self._random.choice([PRODUCE, FETCH, METADATA]), self.sent[-1], body)

    def send(self, most: int) -> None:
        """Send a piece, if the broker reads."""
        if self._unsent and self.peer.transport.is_reading and not self.is_closed:
            buffer = self.peer.connection.get_buffer(-1)
            size = min(len(buffer), len(self._unsent), most)
            buffer[:size], self._unsent = self._unsent[:size], self._unsent[size:]
            self.peer.connection.buffer_updated(size)

    def answer(self) -> None:
        """Let the request that waits longest have its answer."""
        if self.peer.waits:
            correlation_id = next(iter(self.peer.waits))
            future = self.peer.waits.pop(correlation_id)
            if not future.done():
                future.set_result([response(correlation_id)])
            self.peer.turn()

    def finish(self) -> None:
        """Take part to the end: send what was begun, wait for what waits."""
        self.peer.connection.resume_writing()
        self.answer()
        self.send(1 << 30)

    def act(self) -> None:
        choice = self._random.random()
        if choice < 0.6:
            self.begin()
            piece = self._random.choice(PIECES)
            for _ in range(self._random.choice([1, 3, 50])):
                self.send(piece)
        elif choice < 0.75:
            self.answer()
        elif choice < 0.85:
            self.peer.listener.sweep_buffers()
        elif choice < 0.9:
            self.peer.connection.pause_writing()
        else:
            self.peer.connection.resume_writing()


def check(memory: RequestMemory, clients: list[Client]) -> None:
    connections = [client.peer.connection for client in clients]
    assert memory.used >= sum(connection._reserved for connection in connections)
    assert memory.waiting_count == sum(connection._waits_for_memory for connection in connections)


@pytest.mark.parametrize("seed", range(12))
def test_every_client_is_answered_or_closed_and_all_memory_comes_back(seed: int) -> None:
    random_ = random.Random(seed)
    loop = asyncio.new_event_loop()
    memory = RequestMemory(random_.choice(LIMITS), loop)
    clients: list[Client] = []

    def leave(client: Client) -> None:
        clients.remove(client)
        client.peer.connection.connection_lost(None)

    for _ in range(400):
        for client in [one for one in clients if one.is_closed]:
            leave(client)
        if len(clients) < 6 and random_.random() < 0.3:
            clients.append(Client(random_, loop, memory))
        if clients:
            client = random_.choice(clients)
            client.act()
            if random_.random() < 0.05:
                leave(client)
        if random_.random() < 0.05:
            memory._look_at_shares()
        check(memory, clients)
    for _ in range(400):
        for client in list(clients):
            client.finish()
            if client.is_closed:
                leave(client)
    for client in clients:
        assert client.is_whole, client.peer.connection
        assert client.peer.answered == client.sent
    for client in list(clients):
        leave(client)
    assert (memory.used, memory.waiting_count) == (0, 0)
    loop.close()
