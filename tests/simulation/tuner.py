"""A client that changes what administrators change, and looks at any broker whether it is so; see `tuning_history`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History
from tests.simulation.knobs import Knob
from tests.simulation.tuning_history import Change, Register, Sight
from tests.simulation.workload import LOST, NOT_YET

LONGEST_PAUSE_SECONDS = 0.8
CHANGE_RATE = 0.5
NOT_NOW = NOT_YET | {
    # Too few brokers are up for the replicas of a new partition.
    ErrorCode.INVALID_REPLICATION_FACTOR,
    # A controller that has just become a voter has not registered, so that nobody knows which levels it supports.
    ErrorCode.INVALID_UPDATE_VERSION,
}


class Tuner:
    """Changes and looks until stopped.

    Args:
        knobs: what it changes; nobody else does.
        addresses: of all brokers.
        process_of: the process that listens there now; None while there is no such process.
    """

    def __init__(
        self,
        name: str,
        knobs: Sequence[Knob],
        addresses: Sequence[Address],
        history: History,
        rng: random.Random,
        process_of: Callable[[Address], Any],
    ) -> None:
        self.name = name
        self._knobs, self._addresses, self._rng, self._process_of = knobs, addresses, rng, process_of
        self._registers = {knob.name: history.tuning.registers.setdefault(knob.name, Register()) for knob in knobs}
        for knob in knobs:
            self._registers[knob.name].begin(knob.initial)

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)
            knob = self._rng.choice(self._knobs)
            register = self._registers[knob.name]
            try:
                if self._rng.random() < CHANGE_RATE:
                    await self._change(client, knob, register)
                else:
                    await self._look(client, knob, self._rng.choice(self._addresses), register.sights)
            except LOST:
                continue

    def counts(self) -> dict[str, int]:
        """Return, by name, how many changes were acknowledged and how often a broker has said what is so."""
        found = self._registers.values()
        done = sum(change.ended < float("inf") for register in found for change in register.changes)
        return {self.name: done, f"what {self.name} sees": sum(len(register.sights) for register in found)}

    async def read_at_the_end(self, client: ClusterClient) -> None:
        """Ask every broker, each of which knows all; call it when nobody asks for changes any more."""
        for knob in self._knobs:
            for address in self._addresses:
                await self._look(client, knob, address, self._registers[knob.name].final)
            assert self._registers[knob.name].final, f"no broker says at the end what {knob.name} is"

    async def _change(self, client: ClusterClient, knob: Knob, register: Register) -> None:
        loop: Any = asyncio.get_running_loop()
        change = Change(knob.draw(self._rng, register), loop.time())
        register.changes.append(change)
        error = await knob.change(client, change.value)
        if error not in NOT_NOW | knob.done | {ErrorCode.NONE}:
            raise AssertionError(f"{knob.name} = {change.value} was answered {ErrorCode(error).name}")
        if not error or error in knob.done:
            change.ended = loop.time()
            loop.note(f"{knob.name} is {change.value}", is_detail=True)

    async def _look(self, client: ClusterClient, knob: Knob, address: Address, seen: list[Sight]) -> None:
        loop = asyncio.get_running_loop()
        began, process = loop.time(), self._process_of(address)
        error, value = await knob.look(client, address)
        if error not in NOT_YET | {ErrorCode.NONE}:
            raise AssertionError(f"a reader of {knob.name} was answered {ErrorCode(error).name}")
        if not error and process is not None and process is self._process_of(address):
            seen.append(Sight(value, began, loop.time(), process))
