"""A token server on loopback: its keys (`/keys`, a JWK set), and a token for each client that asks (`/token`, client credentials).

The keys can be renewed, and the server can be away, while clients and listeners use it.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from joserfc import jwt
from joserfc.jwk import ECKey

ISSUER, AUDIENCE = "https://tokens.example.org", "kafka"


class TokenIssuer:
    """The keys and tokens of a server.

    Attributes:
        key: that signs.
        lifetime_s: of the tokens that it gives from now on.
    """

    def __init__(self, lifetime_s: float = 600) -> None:
        self.lifetime_s = lifetime_s
        self._renewals = 0
        self.key = self._new_key()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key.kid}>"

    def renew_key(self) -> None:
        """Sign with another key from now on, and publish it alone."""
        self.key = self._new_key()

    def _new_key(self) -> ECKey:
        self._renewals += 1
        return ECKey.generate_key("P-256", {"kid": f"key-{self._renewals}"})

    def document(self) -> bytes:
        """Return the JWK set."""
        return json.dumps({"keys": [self.key.as_dict(private=False)]}).encode()

    def token(self, subject: str, *, key: ECKey | None = None, **claims: object) -> str:
        """Return a signed token.

        Args:
            key: that signs; None: the server's own.
            claims: other values than the usual ones.
        """
        signer, now = key or self.key, time.time()
        usual = {
            "sub": subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "scope": "all",
            "iat": int(now),
            "exp": now + self.lifetime_s,
        }
        return jwt.encode({"alg": "ES256", "kid": signer.kid}, {**usual, **claims}, signer, algorithms=["ES256"])


class TokenServer(TokenIssuer):
    """An issuer on a port; it serves while it is entered.

    Attributes:
        is_away: whether it answers each request with status 503.
        asked: the paths of requests so far.
    """

    def __init__(self, lifetime_s: float = 600) -> None:
        super().__init__(lifetime_s)
        self.is_away = False
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, authorization: str) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        self.asked.append(path)
        if self.is_away:
            return 503, b""
        if path == "/keys":
            return 200, self.document()
        user = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")[0]
        token = {"access_token": self.token(user), "token_type": "Bearer", "expires_in": int(self.lifetime_s)}
        return 200, json.dumps(token).encode()


def _handler(server: TokenServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer()

        def _answer(self) -> None:
            status, body = server.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
