"""The schema registry of an embedded broker, in a thread with a loop of its own, on a free port of the loopback address.

It is the registry that `barnabas registry` runs. Its schemas are in the broker's topic `_schemas`. Without it nothing of it is imported.
"""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Mapping
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.security.client_security import client_security
from barnabas.words.requirements import needed_by

__all__ = ["RegistryThread"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

_HOST = "127.0.0.1"
_TIMEOUT_MS = 10_000
_CLIENT_ID = "barnabas-registry"
_LOOK_S = 0.2


class RegistryThread:
    """A registry of a broker.

    Args:
        settings: of the broker's clients, by the names of the Java client.
        port: 0 for a free one.

    Raises:
        NotInstalled: a package of the extra `registry` is missing.
    """

    def __init__(self, settings: Mapping[str, str], port: int = 0) -> None:
        with needed_by("barnabas.Broker(registry=True)", "registry"):
            serving = importlib.import_module("barnabas.http_serving")
            app = importlib.import_module("barnabas.registry.app")
            registries = importlib.import_module("barnabas.registry.registry")
        self._settings = settings
        self._listener: socket.socket = serving.listening_socket(_HOST, port)
        self.port: int = self._listener.getsockname()[1]
        self._registry: Any = registries.Registry(self._connect, timeout_s=_TIMEOUT_MS / 1000)
        is_ready = threading.Event()
        self._server: Any = serving.HttpServer(app.registry_app(self._registry), is_ready.set)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listener],), name="barnabas-registry", daemon=True
        )
        self._thread.start()
        while not is_ready.wait(_LOOK_S):
            if not self._thread.is_alive():
                raise RuntimeError("the schema registry has not started; its log says why")

    def __repr__(self) -> str:
        return f"<RegistryThread {self.url}>"

    @property
    def url(self) -> str:
        """Its address, the value of a serializer's `schema.registry.url`."""
        return f"http://{_HOST}:{self.port}"

    def begin_again(self) -> None:
        """Make the topic again, after the broker has deleted it, and forget every schema."""
        self._registry.begin_again_soon().result()

    def stop(self) -> None:
        """End the thread."""
        self._server.stop()
        self._thread.join()
        self._listener.close()

    def _connect(self) -> Cluster:
        settings = dict(self._settings)
        bootstrap = settings.pop("bootstrap.servers")
        return Cluster(bootstrap, _CLIENT_ID, _TIMEOUT_MS, security=client_security(settings))
