"""Proof that a form which changes something is from a page of this console: tokens, and previews that are carried out once.

A token is a keyed hash of the visitor's login; another site cannot read it. The key is the process's own, so a token ends with the process.

A preview is remembered by a random id, with a hash of its subject. Its form brings the id back, and the id counts once: a form that
a browser sends again changes nothing. Source: OWASP's notes on cross-site request forgery.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping

PREVIEW_S = 3600
_PREVIEWS_MAX = 10_000


class FormTokens:
    """Tokens of visitors.

    Args:
        key: a seam for tests; a new one if it is None.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def __repr__(self) -> str:
        return "<FormTokens>"

    def of(self, visitor: str) -> str:
        """Return the token of a visitor, who is known by the cookie of a login; the empty text without one."""
        return hmac.new(self._key, visitor.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()

    def is_valid(self, visitor: str, token: str) -> bool:
        """Return whether a form brings the visitor's token."""
        return hmac.compare_digest(self.of(visitor).encode(), token.encode("utf-8", "replace"))


class Taken(enum.Enum):
    """How a preview's id fits the form that brings it."""

    SAME = enum.auto()
    OTHER = enum.auto()
    GONE = enum.auto()


class Previews:
    """The previews that were shown and not carried out.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, tuple[bytes, float]] = {}

    def __repr__(self) -> str:
        return f"<Previews open={len(self._open)}>"

    def show(self, about: bytes) -> str:
        """Remember a preview, and return its id.

        Args:
            about: the hash of its subject.
        """
        now_s = self._clock()
        self._open = {key: each for key, each in self._open.items() if each[1] > now_s}
        while len(self._open) >= _PREVIEWS_MAX:
            del self._open[next(iter(self._open))]
        preview = secrets.token_urlsafe(18)
        self._open[preview] = (about, now_s + PREVIEW_S)
        return preview

    def take(self, preview: str, about: bytes) -> Taken:
        """Forget a preview, and return whether it was about the same."""
        shown, until_s = self._open.pop(preview, (b"", 0.0))
        if self._clock() >= until_s:
            return Taken.GONE
        return Taken.SAME if hmac.compare_digest(shown, about) else Taken.OTHER


def hash_of(visitor: str, cluster: str, change: str, texts: Mapping[str, str], basis: object) -> bytes:
    """Return the hash of a preview's subject."""
    words = [visitor, cluster, change, sorted(texts.items()), basis]
    return hashlib.sha256(json.dumps(words, default=str).encode()).digest()
