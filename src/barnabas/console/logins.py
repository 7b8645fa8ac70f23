"""Who may see the console: a bearer token, or a login that a cookie remembers.

The server keeps a hash of each cookie, for twelve hours after the login. Without a token file and a password file everybody is let in,
which only a console on loopback may do.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable

from barnabas.console.password_file import accepts, read_password_file
from barnabas.http_access import read_token, shows_token

SESSION_S = 12 * 3600
_SESSIONS_MAX = 10_000
_PASSWORD_CHARACTERS_MAX = 1024


class Logins:
    """Checks tokens and passwords, and remembers who has logged in.

    Args:
        token_file: with the one token; None without.
        password_file: with users; None without.
        clock: a seam for tests; seconds that never go back.
    """

    def __init__(
        self,
        token_file: str | None = None,
        password_file: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token_file = token_file
        self.password_file = password_file
        self._clock = clock
        self._sessions: dict[bytes, tuple[str, float]] = {}
        self._one_at_a_time = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Logins needed={self.are_needed} sessions={len(self._sessions)}>"

    @property
    def are_needed(self) -> bool:
        """Whether a visitor has to show something."""
        return self.token_file is not None or self.password_file is not None

    def check_files(self) -> None:
        """Read the files.

        Raises:
            BadTokenFile, BadPasswordFile: one cannot be used.
        """
        if self.token_file is not None:
            read_token(self.token_file)
        if self.password_file is not None:
            read_password_file(self.password_file)

    def is_let_in(self, authorization: str | None, cookie: str | None) -> bool:
        """Return whether a request may see pages."""
        if not self.are_needed:
            return True
        if authorization is not None and self.token_file is not None:
            return shows_token(authorization, read_token(self.token_file))
        return cookie is not None and self.who(cookie) is not None

    def who(self, cookie: str) -> str | None:
        """Return the user of a cookie; None if it is unknown or too old."""
        name, until_s = self._sessions.get(_key(cookie), (None, 0.0))
        return name if self._clock() < until_s else None

    def name_of(self, authorization: str | None, cookie: str | None) -> str | None:
        """Return the user of a request that was let in; None on a console without logins."""
        if authorization is not None and self.token_file is not None:
            return "token"
        return None if cookie is None else self.who(cookie)

    async def log_in(self, name: str, secret: str) -> str | None:
        """Return a new cookie if the password, or the token, is right; None if not.

        One login is checked at a time: that is the limit of guesses, and of the memory for them.

        Raises:
            BadTokenFile, BadPasswordFile: the file cannot be used any longer.
        """
        if len(secret) > _PASSWORD_CHARACTERS_MAX:
            return None
        async with self._one_at_a_time:
            is_right = await asyncio.to_thread(self._is_right, name, secret)
        if not is_right:
            return None
        now_s = self._clock()
        self._sessions = {key: each for key, each in self._sessions.items() if each[1] > now_s}
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        self._sessions[_key(cookie)] = (name or "token", now_s + SESSION_S)
        return cookie

    def _is_right(self, name: str, secret: str) -> bool:
        if name and self.password_file is not None:
            return accepts(read_password_file(self.password_file), name, secret)
        return not name and self.token_file is not None and shows_token(f"Bearer {secret}", read_token(self.token_file))

    def log_out(self, cookie: str) -> None:
        """Forget a cookie."""
        self._sessions.pop(_key(cookie), None)


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
