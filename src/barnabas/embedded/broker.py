"""A broker inside this process, for tests, notebooks and demos.

    with barnabas.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

It is the node that `barnabas start` runs, on its own loop in its own thread; `docs/decisions` compares a thread with a child
process. It listens on a free port of the loopback address, keeps its data in a temporary folder that `stop` deletes, creates topics
on first use, does not sync its metadata to disk, and does not delay the first rebalance of a group.

- `fail`, `drop_response_after_write` and others are faults in the answers to clients (`request_faults`); `heal` and `reset` end them.
- `requests` returns what clients have asked, for assertions.
- `virtual_time=True` lets `advance` pass the time that session timeouts and retention wait for (`virtual_loop`).
- `reset` deletes topics, records, groups and settings; a topic that is created again has a new id. The port, the cluster id and
  open connections stay.
- `registry=True` gives it a schema registry (`registry_thread`), whose schemas end with `reset`.
- `security`, `users` and `acls` give it TLS, logins and ACLs, made when it is made (`development_security`); `client_settings` and
  `librdkafka_settings` return what a client needs.
- `start` and `stop` may be called instead of using `with`; a second `stop` does nothing. A stopped broker may start again, on
  the port that it had, so that clients find it.
- `async with` starts and stops in a helper thread, so that the caller's loop continues.
- Methods may be called from any thread. They wait for the broker's thread and raise its exceptions.
- With `data_dir` nothing is deleted: the next broker over the same folder serves the same data.
- A fork of the process has a copy of this object without its thread: it may read the address, and `stop` does nothing there.
- A mistake of the caller raises an error of one sentence, without the frames in which it was found.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.config.cannot_start import CannotStart, check_system
from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.embedded.broker_arguments import (
    broker_config,
    checked_path,
    checked_port,
    setting_texts,
    topic_request,
)
from barnabas.embedded.fault_arguments import api_key, checked_ahead, checked_where
from barnabas.embedded.fault_plan import EVERY_API, NO_CLOCK_FAULT, ClockFault, RequestFault
from barnabas.embedded.fault_tickets import UNLIMITED, InjectedFault, OwnTickets
from barnabas.embedded.faults_in_answers import FaultsInAnswers, request_settings
from barnabas.embedded.moved_clock import MovedClock
from barnabas.embedded.request_faults import OrderedFault, RequestFaults
from barnabas.embedded.request_log import ObservedRequest, RequestLog
from barnabas.embedded.secured_clients import SecuredClients, make_security
from barnabas.embedded.users_and_acls import UsersAndAcls
from barnabas.embedded.virtual_loop import VirtualLoop
from barnabas.embedded.with_statement import StartedByWith
from barnabas.log.disk import OsDisk
from barnabas.node.node import Node
from barnabas.process.commands import epoch_ms, new_event_loop
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import error_for
from barnabas.protocol.messages import CreateTopicsResponse
from barnabas.turns import one_budget_per_thread
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.embedded.registry_thread import RegistryThread

__all__ = ["Broker"]

logger = logging.getLogger(__name__)

__tracebackhide__ = True  # pytest's reports end at the caller's line

T = TypeVar("T")

_CREATE_TOPICS_VERSION = 7


class Broker(SecuredClients, FaultsInAnswers, StartedByWith):
    """A broker in this process.

    Args:
        data_dir: the data directory; None for a temporary folder that `stop` deletes.
        config: settings by Kafka's names, over the defaults of an embedded broker.
        port: 0 for a free port.
        security: the protocol of its listener: `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`; None for PLAINTEXT. Certificates are made
            when the object is made. TLS needs cryptography.
        users: password by name, of PLAIN and SCRAM. With `SSL` a user has a certificate instead, `CN=NAME`.
        acls: in the words of `barnabas acl create`, such as `--allow-principal User:alice --operation read --topic orders`; all
            else is denied to users but `admin`. None if everybody may do everything.
        registry: start a schema registry with it, at `schema_registry_url`; it needs the extra `registry`.
        virtual_time: `advance` may move the broker's time. The broker then runs on asyncio's loop, which is slower than uvloop's.

    `start` raises `barnabas.ConfigError` if a setting is unknown or not valid, and `barnabas.CannotStart` if the directory is in
    use, belongs to another node, holds other files or cannot be read, if the port is taken, or if the broker is already running.
    `Broker()` itself raises `TypeError` for an argument of another type, and `CannotStart` on a system where no broker runs. A
    method that needs a running broker raises `RuntimeError` without one.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        port: int = 0,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] | None = None,
        registry: bool = False,
        virtual_time: bool = False,
    ) -> None:
        check_system()
        self._security = make_security("barnabas.Broker", security, users, acls)
        self._data_dir = checked_path(data_dir)
        self._settings = setting_texts(config)
        self._port = checked_port(port)
        self._lock = threading.Lock()
        self._has_stopped = False
        self._pid = 0
        self._node: Node | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._remove_folder: Callable[[], object] | None = None
        self._remove_clients: Callable[[], object] | None = None
        self._request_faults: RequestFaults | None = None
        self._faults: dict[int, tuple[InjectedFault, OrderedFault | ClockFault]] = {}
        self._clock = MovedClock(epoch_ms)
        self._has_virtual_time = virtual_time
        self._fault_numbers = 0
        self._has_registry = registry
        self._registry: RegistryThread | None = None
        self._registry_port = 0

    def __repr__(self) -> str:
        state = self.bootstrap_servers if self.is_running else "stopped"
        return f"<barnabas.Broker {state}>"

    @property
    def is_running(self) -> bool:
        """Whether it has started, has not stopped, and has not failed."""
        return self._node is not None and self._node.failure is None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the value of a client's `bootstrap.servers`."""
        return self._running().addresses[0]

    @property
    def port(self) -> int:
        """The port that it listens on, of the loopback address."""
        return self._running().port

    @property
    def data_dir(self) -> str:
        """The folder of its files."""
        return self._running().config.log_dirs[0]

    @property
    def cluster_id(self) -> str:
        """The id of its cluster; `reset` does not change it."""
        return self._running().cluster_id

    @property
    def schema_registry_url(self) -> str:
        """`http://host:port`, the address of its schema registry; the first use starts one if `registry` was not set."""
        self._running()
        with self._lock:
            if self._registry is None:
                # Without a registry none of it is imported.
                module = importlib.import_module("barnabas.embedded.registry_thread")
                registry: RegistryThread = module.RegistryThread(self.client_settings(), self._registry_port)
                self._registry, self._registry_port = registry, registry.port
            return self._registry.url

    def stop_schema_registry(self) -> None:
        """Stop the schema registry, if there is one; the next use of `schema_registry_url` starts it again, on its port."""
        with self._lock:
            self._end_registry()

    def _end_registry(self) -> None:
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.stop()

    def start(self) -> Self:
        """Start, and return when the broker answers requests."""
        with self._lock:
            if self._node is not None:
                address = self._node.addresses[0]
                raise CannotStart(f"this broker already runs on {address}: call stop() first, or make another Broker()")
            try:
                self._start()
            except (CannotStart, ConfigError) as mistake:
                raise mistake.with_traceback(None) from None
        if self._has_registry:
            try:
                _ = self.schema_registry_url
            except BaseException:
                self.stop()
                raise
        return self

    def _start(self) -> None:
        folder = self._data_dir
        if folder is None:
            folder = tempfile.mkdtemp(prefix="barnabas-")
            # Without a call of `stop` the folder is deleted when the interpreter exits.
            self._remove_folder = weakref.finalize(self, _remove_unless_forked, folder, os.getpid())
        try:
            one_budget_per_thread()
            config = self._config(folder)
            loop = self._loop = VirtualLoop() if self._has_virtual_time else new_event_loop()
            node = Node(config, loop=loop, disk=OsDisk(), now_ms=self._clock.now_ms, random=random.Random())
            self._thread = threading.Thread(target=_run, args=(loop,), name="barnabas", daemon=True)
            self._thread.start()
            self._call(node.start)
            try:
                self._call(lambda: self._make_ready(node))
            except BaseException:
                self._call(node.stop)
                raise
        except BaseException:
            self._release()
            raise
        self._pid = os.getpid()
        self._node = node
        if "listeners" not in self._settings:
            self._port = node.port

    def _config(self, folder: str) -> BrokerConfig:
        if self._security is None:
            return broker_config(folder, self._port, self._settings)
        secured = self._security.node_settings(1, 1, is_alone=True)
        return broker_config(folder, self._port, self._settings, self._security.protocol, secured)

    async def _make_ready(self, node: Node) -> None:
        log = RequestLog(node.config.node_id)
        self._request_faults = RequestFaults(node.broker.dispatcher, node.broker.services.loop, log)
        await self._make_users(node)

    async def _make_users(self, node: Node) -> None:
        if self._security is not None:
            await UsersAndAcls.of(self._security).make(node.broker.controller, lambda: node.broker.image)

    def _client_folder(self) -> Path:
        self._running()
        folder = tempfile.mkdtemp(prefix="barnabas-clients-")
        self._remove_clients = weakref.finalize(self, _remove_unless_forked, folder, os.getpid())
        return Path(folder)

    def stop(self) -> None:
        """Stop cleanly and delete the temporary folder."""
        if self._is_forked():
            return
        with self._lock:
            node, self._node = self._node, None
            if node is None:
                return
            self._has_stopped = True
            self._end_registry()
            self._request_faults, self._faults = None, {}
            self._clock.apply(NO_CLOCK_FAULT)
            try:
                self._call(node.stop)
            finally:
                self._release()

    def _release(self) -> None:
        """End the thread and delete the temporary folder."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
        if self._remove_folder is not None:
            self._remove_folder()
            self._remove_folder = None
        if self._remove_clients is not None and self._security is not None:
            self._remove_clients()
            self._remove_clients = None
            self._security.forget_folder()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic.

        Raises:
            KafkaError: the controller rejects it, for example with TOPIC_ALREADY_EXISTS.
            TypeError: an argument is of another type.
        """
        node, request = self._running(), topic_request(name, partitions, config)

        async def create() -> CreateTopicsResponse:
            response = await node.broker.controller.handle(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, request)
            assert isinstance(response, CreateTopicsResponse), response
            return response

        result = self._call(create).topics[0]
        if result.error_code:
            raise error_for(result.error_code, result.error_message)

    def reset(self) -> None:
        """Delete topics, records, groups and settings; a topic that is created again has a new id.

        A secured broker has again the users and ACLs that it began with.

        Clients stay connected. A consumer that is still open joins its group again when it notices, so that it competes with the
        consumers of the next test: a warning in the log names its group.
        """
        node = self._running()
        self.heal()

        async def reset() -> None:
            _warn_of_members(node)
            await node.broker.reset()
            self._observed().log.clear()
            await self._make_users(node)

        self._call(reset)
        if self._registry is not None:
            self._registry.begin_again()

    def requests(
        self,
        api: str | int | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
    ) -> list[ObservedRequest]:
        """Return what clients have asked since the start or the last reset, the oldest first; the last 10,000 requests are kept.

        Args:
            api: Kafka's name, such as `Produce`, or its key; None for every API.
            topic, partition, client_id, group: only requests that name these.
        """
        self._running()
        key = EVERY_API if api is None else api_key(api)
        where = checked_where(topic, partition, client_id, group)

        async def find() -> list[ObservedRequest]:
            return self._observed().log.found(key, where)

        return self._call(find)

    def forget_requests(self) -> None:
        """Let `requests` return only what clients ask from now on."""
        self._running()

        async def forget() -> None:
            self._observed().log.clear()

        self._call(forget)

    @property
    def faults(self) -> tuple[InjectedFault, ...]:
        """The faults that were ordered and not removed, also those that have struck as often as they should."""
        return tuple(injected for injected, _ in self._faults.values())

    def heal(self) -> None:
        """Remove every fault."""
        if self._faults:
            self._set_faults({})

    def _observed(self) -> RequestFaults:
        assert self._request_faults is not None, "the broker runs"
        return self._request_faults

    def _inject(self, fault: RequestFault, node: int | None) -> InjectedFault:
        own = self._running().config.node_id
        if node not in (None, own):
            raise ValueError(f"there is no node {node!r}: this broker is node {own}, or leave node out")
        self._fault_numbers += 1
        number, tickets = self._fault_numbers, OwnTickets(fault.times, fault.nth)
        injected = InjectedFault(number, request_settings(fault, node), tickets, lambda: self._remove(number))
        ordered = OrderedFault(fault._replace(number=number), tickets)
        self._set_faults({**self._faults, number: (injected, ordered)})
        return injected

    def move_clock(self, seconds: float) -> InjectedFault:
        """Set the broker's wall clock ahead, or back if negative: timestamps and retention, but no timers, such as session timeouts.

        Retention looks each `log.retention.check.interval.ms`, five minutes unless the test sets it. Several orders add up.
        """
        checked_ahead(seconds)
        self._fault_numbers += 1
        number, tickets = self._fault_numbers, OwnTickets(UNLIMITED)
        injected = InjectedFault(number, {"kind": "clock", "seconds": seconds}, tickets, lambda: self._remove(number))
        self._set_faults({**self._faults, number: (injected, ClockFault(seconds))})
        tickets.take()
        return injected

    def advance(self, seconds: float) -> None:
        """Let time pass for the broker: session timeouts, retention, delays of transactions and groups, and the time of day.

        Clients do not notice. They send no heartbeats in that time, so a member whose session is shorter than this is removed from
        its group, and a connection that is idle for `connections.max.idle.ms` is closed. Returns when everything that became due
        has been done; an hour takes one or two seconds.

        Args:
            seconds: at least 0.

        Raises:
            RuntimeError: the broker was made without `virtual_time=True`.
            ValueError: the seconds are negative, or more than a hundred years.
        """
        self._running()
        if not isinstance(loop := self._loop, VirtualLoop):
            raise RuntimeError("this broker has the machine's time: make it with barnabas.Broker(virtual_time=True)")
        if seconds < 0:
            raise ValueError(f"seconds={seconds!r}: time does not go back; move_clock sets the wall clock alone")
        checked_ahead(seconds)
        self._call(lambda: loop.advance(seconds, self._clock.advance))

    def _remove(self, number: int) -> None:
        if number in self._faults:
            self._set_faults({each: kept for each, kept in self._faults.items() if each != number})

    def _set_faults(self, faults: dict[int, tuple[InjectedFault, OrderedFault | ClockFault]]) -> None:
        self._running()
        ordered = [each for _, each in faults.values()]

        async def apply() -> None:
            self._observed().apply(each for each in ordered if isinstance(each, OrderedFault))
            self._clock.apply(ClockFault(sum(each.seconds for each in ordered if isinstance(each, ClockFault))))

        self._call(apply)
        self._faults = faults

    def _is_forked(self) -> bool:
        return self._node is not None and self._pid != os.getpid()

    def _running(self) -> Node:
        if self._node is None:
            state = "has stopped: call start() again" if self._has_stopped else "has not started: call start()"
            raise RuntimeError(f"this broker {state}, or use it in a with statement")
        if self._node.failure is not None:
            raise RuntimeError(f"this broker stopped after a fault, which its log explains: {self._node.failure}")
        return self._node

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._is_forked():
            raise RuntimeError(
                f"this broker runs in process {self._pid}, and this is a fork of it: use its bootstrap_servers here, and call"
                " its methods there"
            )
        assert self._loop is not None, "the broker's thread has ended"
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _remove_unless_forked(folder: str, pid: int) -> None:
    """Delete a folder, but not when a fork of the process that made it exits."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


def _warn_of_members(node: Node) -> None:
    for shard in node.broker.coordinators.group.active_shards():
        for group in shard.groups.values():
            if group.member_count:
                logger.warning(
                    "Reset while group %s has members, %d in all: close consumers at the end of a test",
                    printable(group.group_id),
                    group.member_count,
                )
