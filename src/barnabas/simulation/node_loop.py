"""The event loop that one node sees: a facade of the world's loop.

Everything that a node schedules (callbacks, timers, steps of tasks) passes through here on its way to the world's loop and back. So
the node can end or stand still while the others go on:

- `end`: nothing of the node runs any more, not even a `finally`: a killed process does not clean up.
- `pause`: what falls due is kept, in order, until `go_on`.
- A call to a slow disk that blocks: what follows in the same callback happens so much later, and what falls due meanwhile is kept.

While a callback of the node runs, this is the running loop, so `asyncio.sleep` and the like wait on the node's own timers. One node
cannot await a future of another, because asyncio refuses it. So two nodes can only meet through the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import socket
from asyncio import _set_running_loop
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.simulation.disk import SimDisk
from barnabas.simulation.world_loop import Crash, Due, WorldLoop

if TYPE_CHECKING:
    from barnabas.simulation.executor import Executor


CLOSED_AT_LAST = 100
"""How often a coroutine of a dead process may await while it is closed."""


class Machine(Protocol):
    """The parts of a `node.Node` that its loop calls; a node has loops, so a loop must not import it."""

    name: str
    host: str
    disk: SimDisk
    network: Any

    def now_ms(self) -> int: ...
    def wall_seconds(self) -> float: ...
    def note(self, what: str, *, is_detail: bool = False) -> None: ...
    def remark(self, what: str) -> None: ...
    def kill(self, how: str = ...) -> None: ...


class _Handle(asyncio.Handle):
    """A callback of a node, which the world's loop runs. It is asyncio's handle with as little as possible around it."""

    __slots__ = ()

    _loop: NodeLoop
    _context: contextvars.Context
    _callback: Callable[..., object]
    _args: tuple[Any, ...]
    _cancelled: bool

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: NodeLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled = False
        self._repr = self._source_traceback = None

    def _run(self) -> None:
        self._loop.run(self)


class _Timer(_Handle, asyncio.TimerHandle):
    """A timer of a node, which the world's loop runs. Timers are never compared: the world's loop orders them by their time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: NodeLoop,
        context: contextvars.Context | None,
    ) -> None:
        _Handle.__init__(self, callback, args, loop, context)
        self._when = when
        self._scheduled = True


class NodeLoop(asyncio.AbstractEventLoop):
    """One incarnation of a node's process.

    Attributes:
        is_paused: whether the process stands still.
        errors: what reached the exception handler.
        executor: set by the node that owns this loop.
    """

    executor: Executor

    def __init__(self, world: WorldLoop, node: Machine) -> None:
        self._world, self._node = world, node
        self._held: list[Due] = []
        self._is_blocked = False
        self._has_ended = False
        self.is_paused = False
        self._left_behind: list[object] = []
        self.errors: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        state = "ended" if self._has_ended else "paused" if self.is_paused else "running"
        return f"<NodeLoop of {self._node.name} {state}>"

    # Life and death

    def pause(self) -> None:
        self.is_paused = True

    def go_on(self) -> None:
        self.is_paused = False
        self._catch_up()

    def _unblock(self) -> None:
        self._is_blocked = False
        self._catch_up()

    def _catch_up(self) -> None:
        if not self.is_paused and not self._is_blocked:
            held, self._held = self._held, []
            self._world.put_first(held)

    def end(self) -> None:
        """Run nothing of this node from now on.

        Its tasks are kept, so that no garbage collection closes them at a moment that depends on the memory of this process.
        """
        self._has_ended = True
        self._left_behind += asyncio.all_tasks(self)
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # It has not begun, so nothing of it runs here.
        for handle in self._world.handles_of(self):
            self._left_behind.append((handle._callback, handle._args))  # type: ignore[attr-defined]
            handle.cancel()

    def close_coroutines(self) -> None:
        """Close what was left behind. This runs the `finally` blocks of dead processes, so it must wait for the end of the world."""
        left, self._left_behind = self._left_behind, []
        for task in left:
            coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
            for _ in range(CLOSED_AT_LAST):
                if not inspect.iscoroutine(coroutine) or inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED:
                    break
                # It may await on its way out, or raise: its process is gone.
                with contextlib.suppress(BaseException):
                    coroutine.close()

    def run(self, handle: _Handle) -> None:
        """Run what fell due, or keep it while the node is paused."""
        if self._has_ended:
            return
        if self.is_paused or self._is_blocked:
            self._held.append(handle)
            return
        _set_running_loop(self)
        self._world.running = self
        try:
            handle._context.run(handle._callback, *handle._args)
        except Crash:
            self._node.kill("ends in the midst of a write")
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.call_exception_handler({"message": f"an exception in {handle!r}", "exception": error})
        finally:
            _set_running_loop(self._world)
            self._world.running = None
            if self._node.disk.seconds_spent > 0:
                self._wait_for_the_disk()

    def _wait_for_the_disk(self) -> None:
        seconds = self._node.disk.take_seconds()
        if not self._has_ended:
            self._is_blocked = True
            self._world.call_later(seconds, self._unblock)

    # Called by asyncio and the node

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        if not self._has_ended:
            self._world.put(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        if not self._has_ended:
            self._world.put_at(when, timer)
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """The world's loop skips it when its time comes."""

    def time(self) -> float:
        """Return the world's time; later by what this callback has waited for the disk."""
        return self._world.time() + self._node.disk.seconds_spent

    def now_ms(self) -> int:
        """This node's wall clock."""
        return self._node.now_ms()

    def wall_seconds(self) -> float:
        """This node's wall clock, in seconds since 1970."""
        return self._node.wall_seconds()

    def block(self, seconds: float) -> None:
        """Let this callback take so much longer, as a call that blocks does."""
        self._node.disk.seconds_spent += seconds

    def note(self, what: str, *, is_detail: bool = False) -> None:
        """Write a line about this node into the world's timeline."""
        self._node.note(what, is_detail=is_detail)

    def remark(self, what: str) -> None:
        self._node.remark(what)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        return asyncio.Task(coro, loop=self, **options)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        return self.executor.submit(lambda: func(*args))

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return self._node.network.listen(self, protocol_factory, host or self._node.host, port or 0)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        if options.get("ssl") is not None:
            raise NotImplementedError("the simulated network has no TLS: connect without it")
        return await self._node.network.connect(self, protocol_factory, host, port)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]

    @property
    def host(self) -> str:
        """The address that connections of this node come from."""
        return self._node.host

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._has_ended

    def is_closed(self) -> bool:
        return self._has_ended

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._has_ended:
            self.errors.append(context)


REFUSED = (
    "add_reader",
    "add_writer",
    "add_signal_handler",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_datagram_endpoint",
    "create_unix_connection",
    "create_unix_server",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_sendall",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
)
"""The ways out of the process: sockets, pipes, signals and other processes."""


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: NodeLoop, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"loop.{name} is not in the simulation: its clients use asyncio's connections (create_connection), and no sockets of their own"
        )

    return refuse


for _name in REFUSED:
    setattr(NodeLoop, _name, _refusing(_name))
