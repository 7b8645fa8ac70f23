"""The audit log: a line of JSON before each change, and one after it.

    {"time": "2026-11-21T10:00:00.000Z", "id": "k3…", "who": "alice", "from": "127.0.0.1", "cluster": "local",
     "change": "topic-delete", "on": "topic orders", "what": {"name": "orders"}, "result": "begun"}
    {…, "result": "done", "rows": […]}                 or "failed", with "error"

- The first line is on the disk before the cluster is asked. Without it nothing is changed.
- A line without a second one of its id: the console ended before it had the cluster's answer.
- Passwords, keys, values and headers of records are in no line.
- Characters that a terminal would obey are escaped, as everything that is not ASCII.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

logger = logging.getLogger(__name__)


class BadAuditLog(OSError):
    """The audit log cannot be written; the text is one line that names it."""


class Entry(NamedTuple):
    """A change that somebody wants.

    Attributes:
        who: the name of a login; None on a console without logins.
        address: of the visitor, or of a proxy.
        what: the form, without secrets.
        before: what is changed, as it was.
    """

    who: str | None
    address: str | None
    cluster: str
    change: str
    on: str
    what: Mapping[str, str]
    before: Mapping[str, object]


class AuditLog:
    """Writes lines to a file, or to the program's log.

    Args:
        path: of the file; None for the program's log.
        time_ms: epoch milliseconds.
    """

    def __init__(
        self, path: str | None = None, time_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._path = path
        self._time_ms = time_ms

    def __repr__(self) -> str:
        return f"<AuditLog {self._path}>"

    def check(self) -> None:
        """Check that the file can be written.

        Raises:
            BadAuditLog: it cannot.
        """
        self._write("")

    def begin(self, entry: Entry) -> str:
        """Write that a change begins, and return its id.

        Raises:
            BadAuditLog: that cannot be written.
        """
        identity = secrets.token_hex(8)
        self._line(identity, entry, {"what": entry.what, **entry.before, "result": "begun"})
        return identity

    def end(self, identity: str, entry: Entry, rows: object, error: str | None) -> None:
        """Write how a change ended.

        Args:
            rows: what was changed.
            error: what was not; None if nothing failed.

        Raises:
            BadAuditLog: that cannot be written.
        """
        failure = {} if error is None else {"error": error}
        self._line(identity, entry, {"result": "done" if error is None else "failed", "rows": rows, **failure})

    def _line(self, identity: str, entry: Entry, more: Mapping[str, object]) -> None:
        line = {
            "time": format_time_ms(self._time_ms()),
            "id": identity,
            "who": entry.who,
            "from": entry.address,
            "cluster": entry.cluster,
            "change": entry.change,
            "on": entry.on,
            **more,
        }
        self._write(json.dumps(line, default=str))

    def _write(self, line: str) -> None:
        if self._path is None:
            if line:
                logger.info("%s", line)
            return
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                data = f"{line}\n".encode() if line else b""
                if data and os.write(file, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                _sync(file)
            finally:
                os.close(file)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise BadAuditLog(f"the audit log {printable(self._path)} cannot be written: {why}") from None


def _sync(file: int) -> None:
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # A pipe has nothing to sync.
            raise
