"""The options of TLS and login: `kafka.security.protocol`, `kafka.ssl.…` and `kafka.sasl.…`, named and read as by Kafka's own clients.

Their values are secrets, or next to secrets, and they go far: Spark pickles readers and writers for the processes that plan a query
and for executors. So they are one value here, which shows names only, and a copy becomes sockets' settings where it is used:

- `security_options` checks them when the query is planned, on the driver: it reads the files, and builds what connections need.
- Each process of an executor builds its own, from its own files, with the first connection of a task. So a file that an executor lacks
  is an error of the task, in one line with the option's name.
- A process keeps what it built for a minute: tasks of a second share one token of OAUTHBEARER, and a renewed certificate counts for the
  tasks a minute later.

A security option is used or it is an error; none has no effect. Two exceptions are Kafka's own: options of TLS and login under
`kafka.security.protocol` PLAINTEXT, and options of login under SSL, do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.setting_error import SecuritySettingError

if TYPE_CHECKING:
    from barnabas.spark.given_options import GivenOptions

__all__ = ["NO_SECURITY", "SecurityOptions", "of_client", "security_options", "settings_of"]

_PREFIX = "kafka."
_PROTOCOL = "security.protocol"
_FAMILIES = ("security.", "ssl.", "sasl.")
_JAVA_CLASSES = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "security.providers",
)
_KAFKAS_OWN = ".OAuthBearerLoginCallbackHandler"
"""The class that fetches tokens, and what it does is done here: a job may go on naming it."""


@dataclass(frozen=True, slots=True)
class SecurityOptions:
    """A query's options of TLS and login.

    Attributes:
        settings: pairs of a name, as Kafka's clients have it (`ssl.truststore.location`), and a value, sorted.
    """

    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"<SecurityOptions {', '.join(name for name, _ in self.settings)}>"

    def client(self, clock: Callable[[], float] = time.monotonic) -> ClientSecurity | None:
        """Return what connections need, None for plaintext; it reads the files that the options name.

        Args:
            clock: a seam for tests, in seconds.

        Raises:
            ValueError: an option cannot be used; the message is one line that names it, without its value if that is secret.
        """
        if not self.settings:
            return None
        made, since_s = _made.get(self, (None, 0.0))
        if made is not None and clock() - since_s < _KEPT_S:
            return made
        try:
            made = client_security(dict(self.settings))
        except SecuritySettingError as error:
            # `from None`: the error below may have the secret in its frames.
            raise ValueError(f"{_PREFIX}{error}") from None
        if len(_made) >= _MOST_KEPT:
            _made.clear()
        if made is not None:
            _made[self] = made, clock()
        return made


_KEPT_S = 60.0
_MOST_KEPT = 64
_made: dict[SecurityOptions, tuple[ClientSecurity, float]] = {}

NO_SECURITY = SecurityOptions()


def security_options(given: GivenOptions) -> SecurityOptions:
    """Return the options of TLS and login, checked.

    Raises:
        ValueError: as `SecurityOptions.client`; or there are such options, and the protocol that would use them is not named.
    """
    return _checked({name: given.text(name) or "" for name in given.names()})


def settings_of(options: Mapping[str, str] | None) -> SecurityOptions:
    """Return the options of TLS and login in a mapping that may have others; errors as in `security_options`."""
    return _checked({name.lower(): str(value) for name, value in (options or {}).items()})


def of_client(settings: Mapping[str, str]) -> SecurityOptions:
    """Return TLS and login as a client's settings have them, `ssl.truststore.location`; they are not checked."""
    return SecurityOptions(tuple(sorted(each for each in settings.items() if each[0].startswith(_FAMILIES))))


def _checked(options: Mapping[str, str]) -> SecurityOptions:
    settings = {name.removeprefix(_PREFIX): options[name] for name in _names(options)}
    protocol = settings.get(_PROTOCOL)
    if protocol is None:
        if unused := next((name for name in settings if not name.startswith("security.")), None):
            raise ValueError(
                f"{_PREFIX}{unused} is given without {_PREFIX}{_PROTOCOL}, which is PLAINTEXT then: set it to SSL, SASL_SSL or"
                " SASL_PLAINTEXT"
            )
        return NO_SECURITY
    settings[_PROTOCOL] = protocol.strip().upper()
    if settings[_PROTOCOL] == "PLAINTEXT":
        return NO_SECURITY
    for name in _JAVA_CLASSES:
        if name in settings and not settings[name].strip().endswith(_KAFKAS_OWN):
            raise ValueError(f'{_PREFIX}{name} names a Java class, and format("barnabas") has no Java: leave it out')
    found = SecurityOptions(tuple(sorted(settings.items())))
    found.client()
    return found


def _names(options: Iterable[str]) -> list[str]:
    return sorted(
        name for name in options if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).startswith(_FAMILIES)
    )
