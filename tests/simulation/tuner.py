"""A client that changes what administrators change, and looks at any broker whether it is so; see `tuning_history`.

It does not change the same thing again before a broker has shown the last acknowledged change: else the next change would hide that this
one is lost.
"""

from __future__ import annotations

import asyncio
import math
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
CHANGE_RATE = 0.6
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
        name_of: the name of the broker that serves there; None while nobody does.
    """

    def __init__(
        self,
        name: str,
        knobs: Sequence[Knob],
        addresses: Sequence[Address],
        history: History,
        rng: random.Random,
        name_of: Callable[[Address], str | None],
    ) -> None:
        self.name = name
        self._knobs, self._addresses, self._rng, self._name_of = knobs, addresses, rng, name_of
        self._registers = {knob.name: history.tuning.registers.setdefault(knob.name, Register()) for knob in knobs}
        for knob in knobs:
            self._registers[knob.name].begin(knob.initial)
        self._unseen: dict[str, Change] = {}
        """By knob: the last acknowledged change, if no broker has shown it yet."""

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)
            knob = self._rng.choice(self._knobs)
            register = self._registers[knob.name]
            try:
                if self._rng.random() < CHANGE_RATE and knob.name not in self._unseen:
                    await self._change(client, knob, register)
                    continue
                await self._look(client, knob, self._rng.choice(self._addresses), register.sights)
            except LOST:
                continue
            self._forget_what_is_seen(knob, register)

    def counts(self) -> dict[str, int]:
        """Return, by name, how many changes were acknowledged and how often a broker has said what is so."""
        found = self._registers.values()
        done = sum(change.ended < math.inf for register in found for change in register.changes)
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
            self._unseen[knob.name] = change
            loop.note(f"{knob.name} is {change.value}", is_detail=True)

    def _forget_what_is_seen(self, knob: Knob, register: Register) -> None:
        if knob.name in self._unseen and register.sights:
            # A change without an answer may have hidden the acknowledged one.
            hiding = [each.value for each in register.changes if each.ended == math.inf]
            if register.sights[-1].value in (self._unseen[knob.name].value, *hiding):
                del self._unseen[knob.name]

    async def _look(self, client: ClusterClient, knob: Knob, address: Address, seen: list[Sight]) -> None:
        loop = asyncio.get_running_loop()
        began, broker = loop.time(), self._name_of(address)
        error, value = await knob.look(client, address)
        if error not in NOT_YET | {ErrorCode.NONE}:
            raise AssertionError(f"a reader of {knob.name} was answered {ErrorCode(error).name}")
        if not error and broker is not None:
            seen.append(Sight(value, began, loop.time(), broker))
