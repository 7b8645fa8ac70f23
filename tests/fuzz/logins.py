"""Logins that no client makes: messages of SASL, tokens, and the key sets that check them.

Oracles
- A login fails by `TokenRejected`, a token by `InvalidToken`, a key set by ValueError; nothing else leaves them.
- Nobody becomes another principal than the one whose password or key it has.
- A key set that is refused leaves the old keys in place.
- No text for the client or the log has a password, a token or a key.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from random import Random
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from barnabas.security.client_login import client_mechanism
from barnabas.security.sasl.mechanism import ClientMechanism, LoginFailed, ServerMechanism
from barnabas.security.sasl.oauth_claims import ClaimRules
from barnabas.security.sasl.oauth_keys import KeySet, TokenValidator
from barnabas.security.sasl.oauth_messages import bearer_login
from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken, OAuthBearerServer
from barnabas.security.sasl.oauth_unsecured import UnsecuredValidator
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram_keys import ScramMechanism, credential_of_password
from barnabas.security.sasl.scram_server import ScramServer, ScramUsers
from barnabas.security.server_login import ServerLogin, TokenRejected
from tests.fuzz.messages import mutated

NOW_MS = 1_700_000_000_000
USER, PASSWORD = "alice", "open-sesame-7351"
ODD: list[Any] = [
    None, True, False, 0, -1, 1 << 70, 10**400, 1e308, float("nan"), float("inf"), "", " ", "A", "AA==", "ü", "\0", "x" * 5000,
    [], [[]], [None], ["a", "a"], {}, {"a": {}}, "RSA", "EC", "oct", "P-521", "ES512", "none", "HS256", "sig", "enc",
]  # fmt: skip
_CLAIMS = {
    "sub": USER,
    "aud": "kafka",
    "iss": "https://i",
    "iat": NOW_MS // 1000,
    "exp": NOW_MS // 1000 + 600,
    "scope": ["a"],
}
_MODULES = "org.apache.kafka.common.security."


def bent(random: Random, value: Any) -> Any:
    """Return a JSON value with another value somewhere in it, or a member more or less."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = random.choice(list(value))
        kind = random.randrange(4)
        if kind == 0:
            return {other: value[other] for other in value if other != name}
        if kind == 1:
            return {
                **value,
                random.choice(("crit", "b64", "kid", "alg", "use", "key_ops", "x5c", "nbf", "d", "k", "zip")): _odd(
                    random
                ),
            }
        return {**value, name: bent(random, value[name])}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return [*value[:at], bent(random, value[at]), *value[at + random.randrange(2) :]]
    if isinstance(value, str) and random.random() < 0.3:
        return mutated(random, value.encode(), []).decode(errors="replace")
    return _odd(random)


def _odd(random: Random) -> Any:
    return random.choice(ODD)


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _check_text(error: Exception, secret: object) -> None:
    text = str(error)
    assert "\n" not in text, text
    assert len(text) < 10_000, text[:500]
    assert str(secret) not in text, text


class Logins:
    """A stream of logins, tokens and key sets, most of them wrong.

    Attributes:
        tried, accepted: numbers of inputs.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.tried = self.accepted = 0
        self._signers: list[RSAKey | ECKey] = [
            RSAKey.generate_key(2048, {"kid": "RS256"}),
            *(ECKey.generate_key(curve, {"kid": name}) for curve, name in (("P-256", "ES256"), ("P-521", "ES512"))),
        ]
        secret = OctKey.import_key("0123456789abcdef0123456789abcdef", {"kid": "HS256"})
        self._document = {"keys": [key.as_dict(private=False) for key in self._signers] + [secret.as_dict()]}
        self._keys = KeySet()
        self._keys.replace(json.dumps(self._document).encode())
        self._asked: list[str] = []
        rules = ClaimRules(frozenset({"kafka"}), "https://i")
        self._validate = TokenValidator(self._keys, rules, lambda: NOW_MS, self._asked.append)
        self._unsecured = UnsecuredValidator(rules, lambda: NOW_MS)
        self._tokens = [self._signed(key, _CLAIMS) for key in self._signers]
        self._users = {
            each: ScramUsers({USER: credential_of_password(each, PASSWORD, b"salt")}.get, lambda token: None, b"s")
            for each in ScramMechanism
        }
        self._mechanisms: dict[str, Callable[[str], ServerMechanism]] = {
            "PLAIN": lambda during: PlainServer({USER: PASSWORD}.get),
            "OAUTHBEARER": lambda during: OAuthBearerServer(self._validate, during),
            **{each.label: self._scram(each) for each in ScramMechanism},
        }
        login = f'required username="{USER}" password="{PASSWORD}";'
        self._clients: dict[str, Callable[[str], ClientMechanism]] = {
            name: client_mechanism({"sasl.jaas.config": f"{_MODULES}{module} {login}"}, name)
            for name, module in (
                ("PLAIN", "plain.PlainLoginModule"),
                ("SCRAM-SHA-256", "scram.ScramLoginModule"),
                ("SCRAM-SHA-512", "scram.ScramLoginModule"),
            )
        }
        self._messages = [
            b"n,,n=alice,r=x",
            b"c=biws,r=x,p=AAAA",
            b"\0alice\0secret",
            bearer_login(random.choice(self._tokens), {}),
        ]

    def _scram(self, mechanism: ScramMechanism) -> Callable[[str], ServerMechanism]:
        return lambda during: ScramServer(mechanism, self._users[mechanism], self.random.randbytes, during)

    def _signed(self, key: RSAKey | ECKey, claims: dict[str, Any]) -> str:
        kid = str(key.kid)
        return jwt.encode({"alg": kid, "kid": kid}, claims, key, algorithms=[kid])

    def one(self) -> str:
        """Try one; return what it was."""
        self.tried += 1
        part = self.random.choice((self._login, self._login, self._token, self._token, self._key_set))
        part()
        return part.__name__.strip("_")

    # Messages.

    def _login(self) -> None:
        random = self.random
        login = ServerLogin(self._mechanisms, now_ms=lambda: NOW_MS, max_reauth_ms={"PLAIN": 1000})
        name = random.choice(list(self._mechanisms))
        for _ in range(random.choice((1, 1, 2, 3))):
            if login.objection(17):
                return
            asked = name if random.random() < 0.95 else mutated(random, name.encode(), []).decode(errors="replace")
            if not login.handshake(asked, random.randrange(2)):
                break
            if asked != name or (not login.expects_raw_token and login.objection(36)):
                continue
            self._exchange(login, name)
        if login.principal is not None:
            self.accepted += 1
            assert str(login.principal) == f"User:{USER}", login
        for secret in (PASSWORD, *self._tokens):
            assert secret not in login.why_failed, login.why_failed

    def _exchange(self, login: ServerLogin, name: str) -> None:
        """Carry the messages of one mechanism; one of them may be changed."""
        random = self.random
        wrong = random.choice((-1, 0, 0, 1, 2))
        client = self._clients[name]("localhost") if name in self._clients else None
        message: bytes | None = client.begin() if client is not None else bearer_login(random.choice(self._tokens), {})
        for step in range(4):
            if message is None or login.is_complete or login.objection(36):
                break
            if step == wrong:
                message = (
                    mutated(random, message, self._messages)
                    if random.random() < 0.9
                    else random.randbytes(random.randrange(99))
                )
            try:
                answer = login.respond(message)
            except TokenRejected as rejected:
                _check_text(rejected, PASSWORD)
                break
            message = b"\x01"
            if client is not None:
                try:
                    message = client.respond(answer)
                except LoginFailed:
                    message = random.randbytes(20)

    # Tokens.

    def _token(self) -> None:
        random = self.random
        key = random.choice(self._signers)
        kind = random.randrange(5)
        token = random.choice(self._tokens)
        parts = token.split(".")
        if kind == 0:
            token = mutated(random, token.encode(), [each.encode() for each in self._tokens]).decode("latin-1")
        elif kind == 1:
            # Another header or other claims under a signature that was made for the old ones.
            at = random.randrange(2)
            value = json.loads(base64.urlsafe_b64decode(parts[at] + "=="))
            parts[at] = _part(bent(random, value))
            token = ".".join(parts)
        elif kind == 2:
            claims = bent(random, _CLAIMS)
            with contextlib.suppress(ValueError, TypeError):  # What the library does not sign at all.
                token = self._signed(key, claims if isinstance(claims, dict) else {"sub": claims})
        elif kind == 3:
            token = (
                f"{_part(bent(random, {'alg': 'none'}))}.{_part(bent(random, _CLAIMS))}.{random.choice(('', '', 'AA'))}"
            )
        found = self._checked(self._validate, token)
        if found is not None and kind != 2:
            assert found == (USER, (NOW_MS // 1000 + 600) * 1000, frozenset({"a"})), (token, found)
        assert kind != 3 or found is None, token
        if kind == 4:
            assert found is not None, token
        self._checked(self._unsecured, token)

    def _checked(self, validate: Callable[[str], BearerToken], token: str) -> BearerToken | None:
        try:
            found = validate(token)
        except InvalidToken as invalid:
            _check_text(invalid, token if len(token) > 20 else PASSWORD)
            return None
        self.accepted += 1
        assert found.subject.strip(), found
        assert NOW_MS - 31_000 <= found.expires_at_ms < 10**14, found
        return found

    # Key sets.

    def _key_set(self) -> None:
        random = self.random
        document = json.dumps(bent(random, self._document) if random.random() < 0.7 else self._document).encode()
        if random.random() < 0.5:
            document = mutated(random, document, [document[random.randrange(len(document)) :]])
        keys = KeySet()
        keys.replace(json.dumps({"keys": [self._document["keys"][1]]}).encode())
        try:
            keys.replace(document)
        except ValueError as error:
            _check_text(error, self._document["keys"][-1]["k"])
            assert len(keys) == 1
            assert keys.knows("ES256")
            return
        self.accepted += 1
        assert len(keys) > 0
        # What is in the set can be used, whatever it is.
        for token in self._tokens:
            with contextlib.suppress(InvalidToken):
                keys.claims(token)
