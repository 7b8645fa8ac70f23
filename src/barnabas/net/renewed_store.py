"""The key and trust store of one listener, or of the connections that this node dials to listeners of that name; both can be renewed.

    settings of the node ── then ──► settings of the metadata, `listener.name.NAME.ssl.*` ──► files, their times ──► context

The context is that of the next connection; those that are open keep theirs. Stores are read again when one of the settings has changed, or
a file: its time of modification, its size or its inode. `stat` follows links, so a link that is pointed at another folder counts as well.

`judge` reads files and takes tens of milliseconds: the executor calls it. Everything else belongs to the loop.

Source: Kafka's `SslFactory`, `DefaultSslEngineFactory.FileBasedStore.modified`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.metadata.security_settings import RELOADABLE, of_listener
from barnabas.security.store_renewal import LOCATIONS, LoadedStores, StoresRejected, loaded_stores, renewed_stores

__all__ = ["Judged", "RenewedStore"]

FileState = tuple[int, int, int, int] | None
"""Time of modification, size, inode and device of a file; None if it cannot be looked at."""


class Judged(NamedTuple):
    """Stores that have been read.

    Attributes:
        settings, files: what they were read from.
        loaded: None if they may not be used.
        why: says so.
    """

    settings: Mapping[str, str]
    files: tuple[FileState, ...]
    loaded: LoadedStores | None
    why: StoresRejected | None

    def __repr__(self) -> str:
        return f"<Judged {'rejected' if self.loaded is None else self.loaded.entry}>"


class RenewedStore:
    """The stores of one listener.

    Args:
        listener: its name.
        settings: of the node, Java's names without a prefix.
        is_server: for the connections that the listener accepts; else for those that this node dials.
        is_between: whether brokers reach each other by it.

    Raises:
        SecuritySettingError: a setting cannot be used.
    """

    def __init__(
        self, listener: str, settings: Mapping[str, str], *, is_server: bool, is_between: bool = False
    ) -> None:
        self.listener = listener
        self.is_server = is_server
        self._is_between = is_between
        self._of_node = dict(settings)
        self._settings: Mapping[str, str] = self._of_node
        self._files = _files(settings)
        self._loaded = loaded_stores(settings, is_server=is_server, is_between=is_between)
        self._rejected: tuple[Mapping[str, str], tuple[FileState, ...]] | None = None

    def __repr__(self) -> str:
        return f"<RenewedStore {self.listener} {'accepts' if self.is_server else 'dials'} {self._loaded.entry}>"

    def context(self) -> ssl.SSLContext:
        """Return the context of the next connection."""
        return self._loaded.context

    def judge(self, dynamic: Mapping[str, str], *, again: bool = False) -> Judged | None:
        """Read the stores, if they are others than now; blocks, and any thread may call it.

        Args:
            dynamic: this node's settings in the metadata.
            again: read also what was rejected before.

        Returns:
            None if nothing has changed.
        """
        settings = self._with(dynamic)
        files = _files(settings)
        if (settings, files) == (self._settings, self._files):
            return None
        if not again and (settings, files) == self._rejected:
            return None
        try:
            loaded = renewed_stores(settings, self._loaded, is_server=self.is_server, is_between=self._is_between)
        except StoresRejected as error:
            return Judged(settings, files, None, error)
        return Judged(settings, files, loaded, None)

    def take(self, judged: Judged) -> None:
        """Use what was read for the next connection, or remember that it was rejected."""
        if judged.loaded is None:
            self._rejected = (judged.settings, judged.files)
            return
        self._rejected = None
        self._settings, self._files, self._loaded = judged.settings, judged.files, judged.loaded

    @property
    def certificate(self) -> str:
        """The certificate in words."""
        return "no certificate" if self._loaded.entry is None else str(self._loaded.entry)

    @property
    def certificate_end(self) -> int | None:
        """The certificate's last second, in epoch seconds; None without a certificate."""
        return None if self._loaded.entry is None else self._loaded.entry.last_second

    def _with(self, dynamic: Mapping[str, str]) -> dict[str, str]:
        """Return the node's settings under those of the metadata."""
        settings = dict(self._of_node)
        for name, text in dynamic.items():
            found = of_listener(name)
            if found is not None and found[0] == self.listener.lower() and found[1] in RELOADABLE:
                settings[found[1]] = text
        return settings


def _files(settings: Mapping[str, str]) -> tuple[FileState, ...]:
    return tuple(_file(settings.get(name)) for name in LOCATIONS)


def _file(location: str | None) -> FileState:
    if not location:
        return None
    try:
        found = os.stat(location)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
