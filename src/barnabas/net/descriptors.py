"""The descriptors that clients' connections may use; the logs keep theirs.

    of the limit of open files     for
    a half                         segment files (`Disk.max_open_files`)
    an eighth, 48 to 256           all else: the listening sockets, the HTTP port, checkpoints, the process that compacts
    the rest                       connections, and duplicates of their sockets (`sendfile`)

Without this bound, idle connections could use every descriptor, and no write to a partition with a closed file would succeed.

Source: getrlimit(2), RLIMIT_NOFILE.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":  # where no broker runs, but programs import it
    import resource

__all__ = ["Descriptors"]

_UNLIMITED = 2**31


class Descriptors:
    """The connections' share of one process.

    Attributes:
        limit: how many may be in use.
        used: how many are.
    """

    def __init__(self, limit: int = _UNLIMITED) -> None:
        self.limit = limit
        self.used = 0

    def __repr__(self) -> str:
        return f"<Descriptors {self.used}/{self.limit}>"

    @classmethod
    def of_this_process(cls, for_logs: int) -> Descriptors:
        """Return the share of connections, beside `for_logs` segment files."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return cls()
        reserved = min(max(soft // 8, 48), soft // 4, 256)
        return cls(max(soft - for_logs - reserved, 1))

    def take(self) -> bool:
        """Take one, and return whether there was one."""
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        """Give one back."""
        assert self.used > 0, "a descriptor was given back twice"
        self.used -= 1
