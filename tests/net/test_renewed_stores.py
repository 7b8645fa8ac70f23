"""All stores of a node: renewed by settings and by files, checked for a request, and told in one line each."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from barnabas.config.config import BrokerConfig
from barnabas.config.listener_security import INTER_BROKER_MECHANISM
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.image import MetadataImage
from barnabas.net.listener import Listener
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import dialling_security, securities
from barnabas.security.certificate_entries import certificate_entry
from barnabas.security.tls_settings import client_context
from tests.net.listening import connect, next_response
from tests.net.scripted_dispatcher import METADATA, ScriptedDispatcher, request, response
from tests.net.test_renewed_store import Files
from tests.security.certificates import authority

PASSED = ConfigurationsImage()


class Node:
    """A node's listener with TLS, and what it dials the same listener of others with."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.files = Files(folder)
        settings = {
            "listeners": "OUT://127.0.0.1:0",
            "listener.security.protocol.map": "OUT:SSL",
            "inter.broker.listener.name": "OUT",
            **self.files.settings(),
        }
        self.stores = RenewedStores(loop, 1)
        self.config = BrokerConfig.from_properties(settings)
        made = securities(self.config, self.config.listeners, MetadataImage, lambda: 0, self.stores)
        self.listener = Listener(loop, name="OUT", host="127.0.0.1", security=made["OUT"])
        security = dialling_security(self.config, "OUT", INTER_BROKER_MECHANISM, self.stores)
        assert security is not None
        self.security = security

    async def serve(self) -> None:
        await self.listener.bind()
        dispatcher: Any = ScriptedDispatcher(lambda context, body: [response(context.correlation_id, body)])
        self.listener.serve(dispatcher)

    async def dial(self) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect; return the serial number of the node's certificate too."""
        context = client_context(authority().settings())
        reader, writer = await connect(self.listener, ssl=context, server_hostname="localhost")
        found: ssl.SSLObject = writer.get_extra_info("ssl_object")
        certificate = found.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate_entry("", certificate).serial, reader, writer

    def configured(self, **settings: str) -> ConfigurationsImage:
        own = {f"listener.name.out.ssl.{name.replace('_', '.')}": text for name, text in settings.items()}
        return ConfigurationsImage({(4, "1"): own, (4, "2"): {"listener.name.out.ssl.keystore.location": "/not/ours"}})


def certificate_end(pem: str) -> float:
    found = x509.load_pem_x509_certificate(pem[pem.index("-----BEGIN CERTIFICATE") :].encode())
    return found.not_valid_after_utc.timestamp()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == "barnabas.net.renewed_stores"]
    caplog.clear()
    return found


def test_new_connections_see_the_new_certificate_and_old_ones_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        node = Node(tmp_path, asyncio.get_running_loop())
        await node.serve()
        try:
            serial, reader, writer = await node.dial()
            dialled_with = node.security.context
            node.files.renew()
            await node.stores.apply(PASSED)
            renewed, _, another = await node.dial()
            assert renewed != serial
            assert node.security.context is not dialled_with
            (line,) = lines(caplog)
            assert line == f"Listener OUT: renewed stores, for new connections: CN=node, serial number {renewed:x}"
            writer.write(request(METADATA, 1, b"as before"))
            assert await next_response(reader) == (1, b"as before")
            writer.close()
            another.close()
        finally:
            await node.listener.stop()

    asyncio.run(story())


def test_the_ends_of_the_certificates(tmp_path: Path) -> None:
    async def story() -> None:
        node = Node(tmp_path, asyncio.get_running_loop())
        found = node.stores.certificate_ends()
        assert [(name, use) for name, use, _ in found] == [("OUT", "accepts"), ("OUT", "dials")]
        assert {end for _, _, end in found} == {certificate_end(node.files.key.read_text())}

    asyncio.run(story())


def test_settings_of_this_node_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "elsewhere").mkdir()

    async def story() -> None:
        node = Node(tmp_path, asyncio.get_running_loop())
        elsewhere = Files(tmp_path / "elsewhere")
        await node.stores.apply(PASSED)
        assert lines(caplog) == []
        await node.stores.apply(node.configured(keystore_location=str(elsewhere.key)))
        assert len(lines(caplog)) == 1
        # A file under the new name counts from now on, the old one no more.
        node.files.renew()
        node.stores.look()
        assert await node.stores.why_not({"listener.name.out.ssl.keystore.location": str(elsewhere.key)}) == ""
        assert lines(caplog) == []
        elsewhere.renew()
        node.stores.look()
        while not (found := lines(caplog)):
            await asyncio.sleep(0)
        assert found[0].startswith("Listener OUT: renewed stores")

    asyncio.run(story())


def test_stores_that_may_not_be_used_are_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        node = Node(tmp_path, asyncio.get_running_loop())
        before = node.security.context
        node.files.renew("CN=other")
        for _ in range(3):
            await node.stores.apply(PASSED)
        (line,) = lines(caplog)
        assert line.startswith("Listener OUT: stores are not renewed: Keystore DistinguishedName does not match")
        assert node.security.context is before
        answer = await node.stores.why_not({})
        assert answer.startswith(
            "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config"
        )
        node.files.renew()
        assert await node.stores.why_not({}) == ""
        assert node.security.context is before  # A question changes nothing.

    asyncio.run(story())


def test_a_node_in_plain_text_has_no_stores() -> None:
    async def story() -> None:
        stores = RenewedStores(asyncio.get_running_loop(), 1)
        await stores.apply(PASSED)
        assert len(stores) == 0
        assert repr(stores) == "<RenewedStores []>"

    asyncio.run(story())
