"""The golden scripts over sockets: the same commands sent to a running broker, Apache Kafka or ours, in real time.

`WireCoordinator` has the functions of `group.requests` and `group.classic.requests`; each sends one request on a connection of its own and
returns a future of the response. `SocketLoop` stands for the loop, and waits for answers where the virtual one runs what is ready.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import struct
import time
from typing import Any

from barnabas.group.sender import Sender
from barnabas.protocol import messages
from barnabas.protocol.api_keys import api, request_header_version, response_header_version
from barnabas.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    RequestHeader,
)
from tests.coordinator.virtual_loop import VirtualLoop
from tests.group.script import ScriptRunner

QUIET_SECONDS = 0.25
"""How long nothing may arrive before a command is taken to be over."""


class SocketLoop(VirtualLoop):
    """Real time: running what is ready means to wait until the broker is quiet."""

    def __init__(self) -> None:
        super().__init__()
        self.selector = selectors.DefaultSelector()

    def run_ready(self) -> None:
        self.listen(QUIET_SECONDS)

    def advance(self, delay_ms: int) -> None:
        self.listen(delay_ms / 1000 + QUIET_SECONDS)

    def listen(self, seconds: float) -> None:
        super().run_ready()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self.selector.get_map():
                time.sleep(left)
                continue
            for key, _ in self.selector.select(left):
                key.data(key.fileobj)
            super().run_ready()


class WireCoordinator:
    """Asks a broker; the group ids of a script get a prefix, so that scripts do not meet."""

    def __init__(self, loop: SocketLoop, address: tuple[str, int], prefix: str) -> None:
        self._loop = loop
        self._address = address
        self._prefix = prefix
        self._wait_for_coordinator("g", "h")

    def _wait_for_coordinator(self, *group_ids: str) -> None:
        """Have `__consumer_offsets` created, and wait until the groups of the scripts have their coordinator."""
        keys = [self._prefix + group_id for group_id in group_ids]
        groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=key, topics=None) for key in keys]
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            self._ask(10, FindCoordinatorRequest(coordinator_keys=keys, key_type=0), 4)
            fetched = self._ask(9, OffsetFetchRequest(groups=groups), 9)
            self._loop.run_ready()
            if fetched.done() and not any(group.error_code for group in fetched.result().groups):
                return
        raise AssertionError("no coordinator")

    def join_group(self, _: Any, request: Any, sender: Sender) -> asyncio.Future[Any]:
        return self._ask(11, self._prefixed(request), sender.version, sender.client_id)

    def sync_group(self, _: Any, request: Any, sender: Sender) -> asyncio.Future[Any]:
        # Before version 5 the protocol type and name need not be given.
        version = 4 if request.protocol_name is None else 5
        return self._ask(14, self._prefixed(request), version)

    def heartbeat(self, _: Any, request: Any, sender: Sender) -> asyncio.Future[Any]:
        return self._ask(12, self._prefixed(request), 4)

    def leave_group(self, _: Any, request: LeaveGroupRequest, sender: Sender) -> asyncio.Future[Any]:
        return self._ask(13, self._prefixed(request), 5)

    def offset_commit(self, _: Any, request: Any, version: int) -> asyncio.Future[Any]:
        version = version if request.retention_time_ms == -1 else 4
        return self._ask(8, self._prefixed(request), version)

    def offset_fetch(self, _: Any, request: Any, require_stable: bool) -> asyncio.Future[Any]:
        self._prefixed(request)
        response = self._ask(9, OffsetFetchRequest(groups=[request], require_stable=require_stable), 9)
        return self._part(response, lambda r: r.groups[0])

    def offset_delete(self, _: Any, request: Any) -> asyncio.Future[Any]:
        return self._ask(47, self._prefixed(request), 0)

    def describe(self, _: Any, group_ids: list[str], version: int) -> asyncio.Future[Any]:
        request = DescribeGroupsRequest(groups=[self._prefix + group_id for group_id in group_ids])

        def groups(response: Any) -> Any:
            for group in response.groups:
                if group.error_message is not None:
                    group.error_message = group.error_message.replace(self._prefix, "")
            return response.groups

        return self._part(self._ask(15, request, version), groups)

    def list_groups(self, _: Any, request: Any) -> asyncio.Future[Any]:
        def ours(response: Any) -> Any:
            response.groups = [group for group in response.groups if group.group_id.startswith(self._prefix)]
            for group in response.groups:
                group.group_id = group.group_id.removeprefix(self._prefix)
            response.groups.sort(key=lambda group: group.group_id)
            return response

        return self._part(self._ask(16, request, 5), ours)

    def delete_groups(self, _: Any, group_ids: list[str]) -> asyncio.Future[Any]:
        def results(response: Any) -> Any:
            for result in response.results:
                result.group_id = result.group_id.removeprefix(self._prefix)
            order = {group_id: place for place, group_id in enumerate(group_ids)}
            return sorted(response.results, key=lambda result: order[result.group_id])

        request = DeleteGroupsRequest(groups_names=[self._prefix + group_id for group_id in group_ids])
        return self._part(self._ask(42, request, 2), results)

    def _prefixed(self, request: Any) -> Any:
        if request.group_id:
            request.group_id = self._prefix + request.group_id
        return request

    def _part(self, future: asyncio.Future[Any], part: Any) -> asyncio.Future[Any]:
        result: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(lambda done: result.set_result(part(done.result())))
        return result

    def _ask(self, api_key: int, request: Any, version: int, client_id: str = "c") -> asyncio.Future[Any]:
        header_version = request_header_version(api_key, version)
        header = RequestHeader(
            request_api_key=api_key, request_api_version=version, correlation_id=7, client_id=client_id
        )
        frame = header.encode(header_version) + request.encode(version)
        connection = socket.create_connection(self._address)
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        future: asyncio.Future[Any] = self._loop.create_future()
        received = bytearray()

        def receive(readable: socket.socket) -> None:
            received.extend(readable.recv(65536))
            if len(received) < 4 or len(received) < 4 + struct.unpack_from(">i", received)[0]:
                return
            self._loop.selector.unregister(readable)
            readable.close()
            start = 9 if response_header_version(api_key, version) else 8
            response_class = getattr(messages, f"{api(api_key).name}Response")
            future.set_result(response_class.decode(bytes(received[start:]), version))

        self._loop.selector.register(connection, selectors.EVENT_READ, receive)
        return future


class WireRunner(ScriptRunner):
    """Plays a script against a broker; the trace has the answers only."""

    def __init__(self, address: tuple[str, int], prefix: str) -> None:
        super().__init__()
        self.loop: SocketLoop = SocketLoop()
        self._wire = self.requests = self.classic = WireCoordinator(self.loop, address, prefix)
        self.loop.run_ready()

    @property
    def coordinator(self) -> Any:
        return self._wire

    def _trace_log(self) -> None:
        pass

    def trace_states(self) -> None:
        pass


def answers(script: str) -> dict[str, list[str]]:
    """The answers of a script by command; those of one command, and lists of members in them, in a fixed order."""
    found: dict[str, list[str]] = {}
    command = ""
    for line in script.splitlines():
        if line.startswith(">"):
            command = f"{len(found)} {line}"
            found[command] = []
        elif line and not line.startswith(("log ", "  group ", "#")):
            found[command].append(_in_order(line))
    return {command: sorted(lines) for command, lines in found.items()}


def _in_order(line: str) -> str:
    head, bracket, rest = line.partition("members=[")
    if not bracket:
        return line
    members, _, tail = rest.partition("]")
    return f"{head}members=[{','.join(sorted(members.split(',')))}]{tail}"
