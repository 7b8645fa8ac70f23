"""How a run's own clients reach its cluster: in plain text, unless the run has secured its nodes.

A process has one run at a time, and so one way in. Everything below `tests/cluster` dials by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.client.properties import read_properties
from barnabas.security.client_security import ClientSecurity, client_security


class WayIn:
    """The way in of this process.

    Attributes:
        security: of our own clients; None for plain text.
        library: settings of librdkafka.
        file: the settings as a client's properties file, for other processes; None for plain text.
    """

    def __init__(self) -> None:
        self.security: ClientSecurity | None = None
        self.library: dict[str, Any] = {}
        self.file: Path | None = None

    def use(self, file: Path) -> None:
        """Dial by the settings in a properties file from now on."""
        self.file = file
        self.security = client_security(read_properties(str(file)))
        self.library = librdkafka_security(self.security)

    @contextmanager
    def by(self, file: Path) -> Iterator[None]:
        """Dial by the settings in a properties file as long as the block lasts."""
        before = vars(self).copy()
        self.use(file)
        try:
            yield
        finally:
            vars(self).update(before)


way_in = WayIn()
