"""All key and trust stores of a node's listeners, and of the connections that it dials: renewed together, without a restart.

    IncrementalAlterConfigs ─► `why_not`, before the request is forwarded     metadata ─► `apply`     a timer ─► `look`

- Files are read in the executor, one renewal at a time.
- Stores that may not be used change nothing: one line of log, until they change again. So does a renewal that succeeds.
- A node whose listeners are all PLAINTEXT has none, and loads nothing of TLS.

Source: Kafka's `DynamicBrokerConfig` (`reloadUpdatedFilesWithoutConfigChange`); KIP-226. That files are looked at by themselves is ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.steps import in_background
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.metadata.configs_image import ConfigurationsImage
    from barnabas.net.renewed_store import Judged, RenewedStore

__all__ = ["LOOK_MS", "RenewedStores"]

logger = logging.getLogger(__name__)

LOOK_MS = 5_000
"""How often a node looks whether the files have changed."""


class RenewedStores:
    """The stores of one node.

    Args:
        node_id: whose settings in the metadata count.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, node_id: int) -> None:
        self._loop = loop
        self._node_id = node_id
        self._stores: dict[tuple[str, bool], RenewedStore] = {}
        self._dynamic: Mapping[str, str] = {}
        self._renewing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<RenewedStores {list(self._stores.values())!r}>"

    def __len__(self) -> int:
        return len(self._stores)

    def add(self, store: RenewedStore) -> None:
        """Renew a store from now on."""
        self._stores[store.listener.upper(), store.is_server] = store

    def get(self, listener: str, *, is_server: bool) -> RenewedStore | None:
        """Return the store of a listener, or None before it is added."""
        return self._stores.get((listener.upper(), is_server))

    def certificate_ends(self) -> list[tuple[str, str, int]]:
        """Return of each certificate its listener, its use, and its last second, in epoch seconds."""
        return [
            (store.listener, "accepts" if store.is_server else "dials", end)
            for store in self._stores.values()
            if (end := store.certificate_end) is not None
        ]

    async def apply(self, configs: ConfigurationsImage) -> None:
        """Renew the stores by the settings of the metadata, and those whose files have changed."""
        if self._stores:
            dynamic = configs.for_resource(ConfigResourceType.BROKER, str(self._node_id))
            async with self._renewing:
                self._dynamic = dynamic
                await self._renew()

    def look(self) -> None:
        """Renew the stores whose files have changed; a timer calls this."""
        if not self._renewing.locked():
            in_background(self._look(), self._loop)

    async def _look(self) -> None:
        async with self._renewing:
            await self._renew()

    async def why_not(self, dynamic: Mapping[str, str]) -> str:
        """Return Kafka's answer to settings whose stores this node may not use; empty if it may.

        Args:
            dynamic: all settings of this node in the metadata, as they would be.
        """
        async with self._renewing:
            judged = await self._loop.run_in_executor(None, _judge, list(self._stores.values()), dynamic, True)
        for _, each in judged:
            if each.why is not None:
                return each.why.answer
        return ""

    async def _renew(self) -> None:
        stores = list(self._stores.values())
        for store, judged in await self._loop.run_in_executor(None, _judge, stores, self._dynamic, False):
            store.take(judged)
            if store.is_server or (store.listener.upper(), True) not in self._stores:
                self._log(store, judged)

    def _log(self, store: RenewedStore, judged: Judged) -> None:
        what = f"Listener {store.listener}" if store.is_server else f"Connections to listener {store.listener}"
        if judged.why is None:
            logger.info("%s: renewed stores, for new connections: %s", what, printable(store.certificate))
        else:
            logger.warning("%s: stores are not renewed: %s", what, printable(str(judged.why)))


def _judge(
    stores: Iterable[RenewedStore], dynamic: Mapping[str, str], again: bool
) -> list[tuple[RenewedStore, Judged]]:
    found = [(store, store.judge(dynamic, again=again)) for store in stores]
    return [(store, judged) for store, judged in found if judged is not None]
