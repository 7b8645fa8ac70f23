"""Fulfilment and notifications as processes of the demo, and whether what they did is what the order lines ask for."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.client.admin import LATEST, TopicPartition, results
from barnabas.demo.child_process import ChildProcess
from barnabas.demo.generator import COLUMNS
from barnabas.demo.order_services import SERVICES, Fulfilment, database_of, group_of
from barnabas.demo.shop import ORDERS
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.shop_process import ShopStopped


class Served(NamedTuple):
    """The work of both services.

    Attributes:
        packed, returned: pieces.
        confirmations, cancellations: mails.
        set_aside: events that fulfilment cannot use.
    """

    packed: int
    returned: int
    confirmations: int
    cancellations: int
    set_aside: int


class ServiceProcesses:
    """Both services; each writes its database and its log into the folder."""

    def __init__(self, folder: Path, broker: ShopBroker) -> None:
        self._folder = folder
        self._broker = broker
        config = [str(broker.config)] if broker.config else []
        module = "barnabas.demo.order_services"
        self._processes = {
            name: ChildProcess(
                [sys.executable, "-m", module, name, broker.servers, str(folder), *config],
                folder,
                folder / f"{name}.log",
                {},
            )
            for name in SERVICES
        }

    def __repr__(self) -> str:
        return f"<ServiceProcesses folder={self._folder}>"

    def start(self) -> None:
        for process in self._processes.values():
            process.start()

    def kill_fulfilment(self) -> None:
        """Kill fulfilment, and start it again."""
        self._processes[Fulfilment.name].kill()
        self._processes[Fulfilment.name].start()

    def stop(self) -> None:
        for process in self._processes.values():
            process.stop()

    def check(self) -> None:
        """Raise ShopStopped if a service ended by itself."""
        for name, process in self._processes.items():
            if (said := process.last_words()) is not None:
                raise ShopStopped(f"the service {name} ended: {said}")

    def behind(self) -> dict[str, int]:
        """Return how many events of orders each service has not committed yet."""
        partitions = [TopicPartition(ORDERS.name, number) for number in range(ORDERS.partitions)]
        with self._broker.admin() as admin:
            ends = results(admin.list_offsets(dict.fromkeys(partitions, LATEST)))
            sent = sum(end.offset for end in ends.values())
            read = {
                name: sum(each.offset for each in admin.list_group_offsets(group_of(name), partitions).values())
                for name in SERVICES
            }
        return {name: sent - offsets for name, offsets in read.items()}

    def served(self) -> Served:
        """Return what the services have done."""
        with database_of("fulfilment", self._folder) as database:
            packed, returned = (
                _first(database, f"SELECT COALESCE(SUM(pieces), 0) FROM {each}") for each in ("packed", "returned")
            )
            set_aside = _first(database, "SELECT COUNT(*) FROM set_aside")
        with database_of("notifications", self._folder) as database:
            confirmations, cancellations = (
                _first(database, f"SELECT COUNT(*) FROM mails WHERE kind = '{kind}'")
                for kind in ("confirmation", "cancellation")
            )
        return Served(packed, returned, confirmations, cancellations, set_aside)


def _first(database: sqlite3.Connection, query: str) -> int:
    (found,) = database.execute(query).fetchone()
    return int(found)


def expected(lines: Iterable[Sequence[str]]) -> Served:
    """Return what the services must do, straight from the order lines."""
    packed = returned = set_aside = 0
    orders: set[str] = set()
    cancelled: set[str] = set()
    for line in lines:
        if len(line) != len(COLUMNS):
            set_aside += 1
            continue
        order = line[0]
        (cancelled if order.startswith("C") else orders).add(order)
        try:
            pieces = int(line[3])
        except ValueError:
            set_aside += 1
            continue
        if order.startswith("C"):
            returned -= pieces
        else:
            packed += pieces
    return Served(packed, returned, len(orders), len(cancelled), set_aside)
