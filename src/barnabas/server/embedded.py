"""A broker inside this process, for tests, notebooks and demos.

    with barnabas.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

It is the node that `barnabas start` runs, on its own loop in its own thread; `docs/decisions` compares a thread with a child
process. It listens on a free port of the loopback address, keeps its data in a temporary folder that `stop` deletes, creates topics
on first use, does not sync its metadata to disk, and does not delay the first rebalance of a group.

- `reset` deletes topics, records, groups and settings; a topic that is created again has a new id. The port, the cluster id and
  open connections stay.
- `start` and `stop` may be called instead of using `with`; a second `stop` does nothing.
- Methods may be called from any thread. They wait for the broker's thread and raise its exceptions.
- With `data_dir` nothing is deleted: the next broker over the same folder serves the same data.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.log.disk import OsDisk
from barnabas.printable import printable
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import error_for
from barnabas.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from barnabas.server.broker import BrokerServer
from barnabas.server.commands import epoch_ms, new_event_loop
from barnabas.server.config import BrokerConfig
from barnabas.server.config_sources import unknown_setting

__all__ = ["Broker"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_HOST = "127.0.0.1"
_CREATE_TOPICS_VERSION = 7


class Broker:
    """A broker in this process.

    Args:
        data_dir: the data directory; None for a temporary folder that `stop` deletes.
        config: settings by Kafka's names, over the defaults of an embedded broker.
        port: 0 for a free port.

    `start` raises `barnabas.server.config.ConfigError` if a setting is not valid, and `barnabas.server.broker.CannotStart` if the
    directory is in use, belongs to another node or cannot be read, or if the port is taken.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        port: int = 0,
    ) -> None:
        self._data_dir = None if data_dir is None else fspath(data_dir)
        self._settings = {name: _text(value) for name, value in (config or {}).items()}
        self._port = port
        self._server: BrokerServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._remove_folder: Callable[[], object] | None = None

    def __repr__(self) -> str:
        state = self.bootstrap_servers if self.is_running else "stopped"
        return f"<barnabas.Broker {state}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        return self._server is not None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the value of a client's `bootstrap.servers`."""
        return f"{_HOST}:{self.port}"

    @property
    def port(self) -> int:
        return self._running().port

    @property
    def data_dir(self) -> str:
        return self._running().config.log_dirs[0]

    @property
    def cluster_id(self) -> str:
        return self._running().cluster_id

    def start(self) -> Self:
        """Start, and return when the broker answers requests."""
        assert self._server is None, "this broker is already running"
        folder = self._data_dir
        if folder is None:
            folder = tempfile.mkdtemp(prefix="barnabas-")
            # Without a call of `stop` the folder is deleted when the interpreter exits.
            self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        listeners = {"listeners": f"PLAINTEXT://{_HOST}:{self._port}"}
        config = BrokerConfig.from_properties({**listeners, **self._settings, "log.dirs": folder}, embedded=True)
        for name in config.unknown:
            logger.warning("%s is ignored: %s", printable(name), unknown_setting(name))
        loop = self._loop = new_event_loop()
        server = BrokerServer(config, loop=loop, disk=OsDisk(), now_ms=epoch_ms, random=random.Random())
        self._thread = threading.Thread(target=_run, args=(loop,), name="barnabas", daemon=True)
        self._thread.start()
        try:
            self._call(server.start)
        except BaseException:
            self._end_thread()
            raise
        self._server = server
        return self

    def stop(self) -> None:
        """Stop cleanly and delete the temporary folder."""
        server, self._server = self._server, None
        if server is None:
            return
        try:
            self._call(server.stop)
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        loop, thread = self._loop, self._thread
        assert loop is not None, "there is no thread to end"
        assert thread is not None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        self._loop = self._thread = None
        if self._remove_folder is not None:
            self._remove_folder()
            self._remove_folder = None

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
        """
        server = self._running()
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=key, value=_text(value))
                        for key, value in (config or {}).items()
                    ],
                )
            ]
        )

        async def create() -> CreateTopicsResponse:
            response = await server.controller.handle(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, request)
            assert isinstance(response, CreateTopicsResponse), response
            return response

        result = self._call(create).topics[0]
        if result.error_code:
            raise error_for(result.error_code, result.error_message)

    def reset(self) -> None:
        """Delete everything that was created since the start; the module lists it."""
        self._call(self._running().reset)

    def _running(self) -> BrokerServer:
        if self._server is None:
            raise RuntimeError("this broker is not running: use it in a with statement or call start()")
        return self._server

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        assert self._loop is not None, "the broker's thread has ended"
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _text(value: object) -> str:
    """Return a setting's value as a properties file writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
