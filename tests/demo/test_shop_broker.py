"""The demo's processes log in with what a properties file says, and no command line has a secret."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.failure import Failure
from barnabas.demo.feeder import Feed, feed_lines, read_lines
from barnabas.demo.service_processes import ServiceProcesses, expected
from barnabas.demo.shop import create_topics, filled_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.protocol.errors import KafkaError
from tests.cluster.waiting import wait_for

PASSWORD = "of-the-shop-7"
ACLS = [
    "--allow-principal User:shop --operation all --topic *",
    "--allow-principal User:shop --operation all --group *",
    "--allow-principal User:shop --operation idempotent-write --cluster",
]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(security="SASL_SSL", users={"shop": PASSWORD}, acls=ACLS) as running:
        yield running


def written(folder: Path, settings: dict[str, str]) -> Path:
    file = folder / "shop.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def command_lines() -> list[str]:
    """Return the command line of every process of this machine."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found.append(file.read_text(errors="replace"))
    return found


def has_read_all(services: ServiceProcesses) -> bool:
    services.check()
    return not any(services.behind().values())


def test_feeder_and_services_work_through_a_login(broker: barnabas.Broker, tmp_path: Path) -> None:
    shop = ShopBroker(broker.bootstrap_servers, written(tmp_path, broker.client_settings("shop")))
    feed = Feed(rows=300)
    create_topics(shop)
    feed_lines(shop, feed)
    assert filled_topics(shop) == ["orders", "payments", "inventory"]
    services = ServiceProcesses(tmp_path, shop)
    services.start()
    try:
        wait_for("both services have read all orders", lambda: has_read_all(services))
        lines = command_lines()  # only now: Linux shows an empty line for an instant after the start of a process
    finally:
        services.stop()
    assert services.served() == expected(read_lines(feed))
    assert sum(str(shop.config) in line for line in lines) == 2, "both were told the file"
    assert not any(PASSWORD in line for line in lines)
    assert not any(PASSWORD in log.read_text() for log in tmp_path.glob("*.log"))


def test_a_wrong_password_is_one_sentence(broker: barnabas.Broker, tmp_path: Path) -> None:
    settings = broker.client_settings("shop")
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(PASSWORD, "another")
    with pytest.raises(KafkaError, match=r"[Aa]uthentication failed"):
        filled_topics(ShopBroker(broker.bootstrap_servers, written(tmp_path, settings)))


def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    broker = ShopBroker("127.0.0.1:1", written(tmp_path, {"security.protocol": "SASL_TLS"}))
    for use in (broker.admin, broker.library_settings):
        with pytest.raises(Failure, match=r"security\.protocol"):
            use()
