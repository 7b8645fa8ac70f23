"""A process with blocking code in the simulated world: a driver, a Python worker, or a reader. It may die or stand still at any request.

| fault | what happens |
|---|---|
| `killed before` | it dies, and the request is not sent |
| `killed sending` | it dies when the request is on its way |
| `killed after` | it dies when the broker has carried the request out |
| `frozen before`, `frozen after` | it stands still, as in a long pause of its machine, and goes on later |

A request is counted by its name, so that a fault can be aimed: the third EndTxn. `step` counts what is no request in the same way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.wire import BlockingConnection
from tests.simulation.sink.actor import Actor
from tests.simulation.sink.blocking_connection import SimulatedConnection

if TYPE_CHECKING:
    from barnabas.simulation.world import World

R = TypeVar("R")

KILLED_BEFORE, KILLED_SENDING, KILLED_AFTER = "killed before", "killed sending", "killed after"
FROZEN_BEFORE, FROZEN_AFTER = "frozen before", "frozen after"
ANY = "any request"


class ProcessFault(NamedTuple):
    """One fault of a process.

    Attributes:
        request: the name of the request, or `ANY`.
        number: it strikes at this one of them, from 0.
        seconds: how long a frozen process stands still.
    """

    kind: str
    request: str = ANY
    number: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.request} {self.number}"


class Process:
    """A process on a machine of its own.

    Args:
        fault: its fault, None for none.

    Attributes:
        node: its machine.
        struck: the fault, once it has struck.
    """

    def __init__(self, world: World, name: str, fault: ProcessFault | None = None) -> None:
        self.node = world.add_node(name)
        self._world, self._fault = world, fault
        self.struck: ProcessFault | None = None
        self._actor: Actor[Any] | None = None
        self._clusters: list[Cluster] = []
        self._seen: Counter[str] = Counter()
        self._meant: set[int] = set()
        self._requests = 0

    def __repr__(self) -> str:
        return f"<Process {self.node.name} {self.node.loop!r}>"

    @property
    def is_up(self) -> bool:
        return self.node.is_up

    @property
    def is_frozen(self) -> bool:
        return self.node.is_up and self.node.loop.is_paused

    def kill(self, how: str = "is killed") -> None:
        """End the process; nothing of it runs any more."""
        if self.node.is_up:
            self.node.kill(how)
            self.unwind()

    def unwind(self) -> None:
        """End the thread of its blocking work; the process has died, or the world has ended."""
        if self._actor is not None:
            self._actor.kill()

    def go_on(self) -> None:
        """End a pause early."""
        if self.is_frozen:
            self.node.go_on()

    async def call(self, work: Callable[[], R]) -> R:
        """Run blocking work, in the process's loop; one at a time."""
        assert self._actor is None, f"{self.node.name} is busy"
        self._actor = Actor(self.node.loop, work)
        try:
            outcome: R = await self._actor.run()
            return outcome
        finally:
            self._actor = None

    # What blocking code calls

    def wait(self, wanted: Coroutine[Any, Any, R]) -> R:
        assert self._actor is not None, f"{self.node.name} waits outside blocking work"
        answer: R = self._actor.wait(wanted)
        return answer

    def clock(self) -> float:
        return self.node.loop.time()

    def sleep(self, seconds: float) -> None:
        self.wait(asyncio.sleep(seconds))

    def now_ms(self) -> int:
        return self.node.now_ms()

    def connect(self, host: str, port: int, **arguments: Any) -> BlockingConnection:
        return SimulatedConnection(self, host, port, **arguments)

    def cluster(self, bootstrap: str, client_id: str, timeout_ms: int) -> Cluster:
        """Return the client's view of the cluster in this process."""
        return Cluster(
            bootstrap,
            client_id,
            timeout_ms,
            clock=self.clock,
            sleep=self.sleep,
            connect=self.connect,
            identify=lambda host, port: None,
        )

    # Faults

    def aim(self, kind: str, request: str, later: int) -> None:
        """Let a fault strike at a request from now on, so many of that name later."""
        self._fault, self.struck = ProcessFault(kind, request, self._seen[request] + later), None

    def before_request(self, name: str) -> int:
        """Count a request that is about to be sent; return its number."""
        number, self._requests = self._requests, self._requests + 1
        if self._is_meant(name, {name: self._seen[name], ANY: number}):
            self._meant.add(number)
            self._strike(KILLED_BEFORE, FROZEN_BEFORE)
        return number

    def note_request(self, what: str) -> None:
        self.node.note(what, is_detail=True)

    def when_sent(self, number: int) -> None:
        if number in self._meant:
            self._strike(KILLED_SENDING)

    def when_answered(self, number: int) -> None:
        if number in self._meant:
            self._strike(KILLED_AFTER, FROZEN_AFTER)

    async def step(self, name: str) -> None:
        """Count something that is no request, outside blocking work; a fault may strike before it."""
        if not self._is_meant(name, {name: self._seen[name]}):
            return
        fault = self.struck = self._fault
        assert fault is not None
        if fault.kind in (FROZEN_BEFORE, FROZEN_AFTER):
            self._freeze(fault)
        else:
            self.node.kill(str(fault))
        # A process that has died, or stands still, does not come back from here before it goes on.
        await asyncio.sleep(0)

    def _is_meant(self, name: str, numbers: dict[str, int]) -> bool:
        self._seen[name] += 1
        fault = self._fault
        return fault is not None and self.struck is None and numbers.get(fault.request) == fault.number

    def _strike(self, *kinds: str) -> None:
        fault = self._fault
        if fault is None or fault.kind not in kinds or self.struck is not None:
            return
        self.struck = fault
        assert self._actor is not None
        if fault.kind in (FROZEN_BEFORE, FROZEN_AFTER):
            self._freeze(fault)
            self.wait(asyncio.sleep(0))
        else:
            self.node.kill(str(fault))
            self._actor.die()

    def _freeze(self, fault: ProcessFault) -> None:
        self.node.note(str(fault))
        self.node.pause()
        self._world.loop.call_later(fault.seconds, self.go_on)
