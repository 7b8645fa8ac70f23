"""Handshakes of TLS, certificates, key stores and logins' settings that nobody writes.

Oracles
- A handshake fails by ssl.SSLError, a certificate by ValueError, a setting by `SecuritySettingError`; nothing else leaves them.
- No client without a certificate of the authority is established at a listener that requires one.
- An error is one line, and has nothing of a key or a password.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from pathlib import Path
from random import Random

from barnabas.security.certificate_names import NoMatchingRule, PrincipalMapper, certificate_name
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.jaas import parse_jaas
from barnabas.security.key_stores import key_store, trusted_certificates
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import client_context, server_context
from tests.fuzz.messages import mutated

SECRET = "open-sesame-7351"
_NAMES = (
    "CN=alice,OU=orders,O=example,C=DE",
    "CN=a\\,b\\+c\\=d",
    "CN=ü,O=\\#x",
)
_JAAS = (
    f'org.example.PlainLoginModule required username="alice" password="{SECRET}" user_bob=\'{SECRET}\';',
    f'org.example.ScramLoginModule /* {SECRET} */ optional password="\\101{SECRET}\\n" tokenauth=true ; // {SECRET}',
)
_RULES = ("RULE:^CN=([a-z]+),.*$/$1/L,DEFAULT", "RULE:.*/x$1$$/U, RULE:a\\/b/c\\$/", "DEFAULT")


class Certificates:
    """A stream of handshakes, certificates and settings, most of them wrong.

    Args:
        folder: for store files.

    Attributes:
        tried, accepted: numbers of inputs.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.tried = self.accepted = 0
        self._store = folder / "store"
        # OpenSSL looks at the computer's clock.
        now_ms = time.time_ns() // 1_000_000
        authority = DevelopmentAuthority.create(now_ms)
        other = DevelopmentAuthority.create(now_ms, "CN=another")
        node, user = authority.issue("CN=node", hosts=["localhost"]), authority.issue("CN=alice")
        self._trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate}
        self._node = {**self._trust, **node.settings()}
        self._servers = [server_context({**self._node, "ssl.client.auth": each}) for each in ("none", "required")]
        self._clients = [
            client_context({**self._trust, **more})
            for more in (user.settings(), {}, {"ssl.enabled.protocols": "TLSv1.2"}, other.issue("CN=alice").settings())
        ]
        self._certificates = [ssl.PEM_cert_to_DER_cert(_first(authority.issue(name).certificate)) for name in _NAMES]
        self._stores = [node.pkcs12(SECRET), authority.trust_store(SECRET)]
        self._secret_lines = [line for line in node.key.splitlines() if len(line) > 40 and "-" not in line]
        self._hellos = [TlsLayer(each, is_server=False, server_name="localhost").to_send() for each in self._clients]

    def one(self) -> str:
        """Try one; return what it was."""
        self.tried += 1
        part = self.random.choice(
            (
                self._hello,
                self._hello,
                self._handshake,
                self._name,
                self._name,
                self._name,
                self._pem,
                self._pkcs12,
                self._words,
                self._words,
            )
        )
        part()
        return part.__name__.strip("_")

    def _hello(self) -> None:
        random = self.random
        layer = TlsLayer(random.choice(self._servers), is_server=True)
        hello = random.choice(self._hellos)
        data = (
            random.randbytes(random.randrange(600)) if random.random() < 0.1 else mutated(random, hello, self._hellos)
        )
        self._take(layer, data)
        assert not layer.is_established

    def _handshake(self) -> None:
        """Shake hands, and change bytes of the client somewhere on the way, or after it."""
        random = self.random
        requires = random.randrange(2)
        server = TlsLayer(self._servers[requires], is_server=True)
        chosen = random.randrange(len(self._clients))
        client = TlsLayer(self._clients[chosen], is_server=False, server_name="localhost")
        wrong = random.choice((-1, 1, 1, 2, 3))
        for step in range(6):
            data = client.to_send()
            if step == wrong:
                data = mutated(random, data, self._hellos)
            if not self._take(server, data):
                return
            try:
                client.received(server.to_send())
                client.read_into(bytearray(1 << 16))
            except ssl.SSLError:
                return
            if client.is_established:
                client.write(b"x" * random.choice((1, 5000, 40_000)))
        if server.is_established:
            self.accepted += 1
            assert not requires or chosen == 0, "a client without a certificate of the authority"

    def _take(self, layer: TlsLayer, data: bytes) -> bool:
        """Give bytes to a server in pieces, as a socket does; return whether its connection goes on."""
        try:
            while data:
                count = self.random.choice((1, 7, 600, 100_000))
                layer.received(data[:count])
                data = data[count:]
                layer.read_into(bytearray(1 << 16))
            layer.peer_certificate()
        except ssl.SSLError:
            layer.to_send()
            return False
        return True

    def _name(self) -> None:
        der = mutated(self.random, self.random.choice(self._certificates), self._certificates)
        try:
            name = certificate_name(der)
        except ValueError:
            return
        self.accepted += 1
        with contextlib.suppress(NoMatchingRule):
            PrincipalMapper(self.random.choice(_RULES[::2]))(name)

    def _pem(self) -> None:
        random = self.random
        settings = dict(self._node)
        name = random.choice([each for each in settings if not each.endswith("type")])
        settings[name] = mutated(random, settings[name].encode(), [each.encode() for each in settings.values()]).decode(
            "latin-1"
        )
        try:
            key_store(settings)
            trusted_certificates(settings)
            server_context(settings)
        except SecuritySettingError as error:
            self._check(error)
            return
        self.accepted += 1

    def _pkcs12(self) -> None:
        random = self.random
        data = random.choice(self._stores)
        self._store.write_bytes(mutated(random, data, self._stores) if random.random() < 0.95 else data)
        for kind, read in (("keystore", key_store), ("truststore", trusted_certificates)):
            settings = {
                f"ssl.{kind}.type": random.choice(("PKCS12", "JKS")),
                f"ssl.{kind}.location": str(self._store),
                f"ssl.{kind}.password": SECRET,
            }
            try:
                read(settings)
            except SecuritySettingError as error:
                self._check(error)
                continue
            self.accepted += 1

    def _words(self) -> None:
        random = self.random
        jaas = mutated(random, random.choice(_JAAS).encode(), [each.encode() for each in _JAAS]).decode("latin-1")
        rules = mutated(random, random.choice(_RULES).encode(), [each.encode() for each in _RULES]).decode("latin-1")
        for read in (lambda: repr(parse_jaas(jaas)), lambda: repr(PrincipalMapper(rules))):
            try:
                text = read()
            except SecuritySettingError as error:
                self._check(error)
                continue
            self.accepted += 1
            assert SECRET not in text, text

    def _check(self, error: SecuritySettingError) -> None:
        text = str(error)
        assert "\n" not in text, text
        assert len(text) < 1000, text
        assert not any(secret in text for secret in (SECRET, *self._secret_lines)), text


def _first(chain: str) -> str:
    """Return the first certificate of a chain in PEM."""
    end = "-----END CERTIFICATE-----"
    return chain[: chain.index(end) + len(end)] + "\n"
