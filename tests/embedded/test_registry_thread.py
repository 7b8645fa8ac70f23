"""A registry beside a broker in one process: its life, reset, and a secured broker."""

from __future__ import annotations

import subprocess
import sys

import barnabas
from tests.registry.asking import Asking


def test_reset_forgets_the_schemas() -> None:
    with barnabas.Broker(registry=True) as broker:
        registry = Asking(broker.schema_registry_url)
        assert registry.register("s", '"int"') == 1
        broker.reset()
        assert registry.get("/subjects") == []
        assert registry.register("t", '"long"') == 1
        broker.reset()
        assert registry.get("/schemas/ids/1") == 40403


def test_it_starts_again_where_it_was(tmp_path: object) -> None:
    with barnabas.Broker(str(tmp_path), registry=True) as broker:
        url = broker.schema_registry_url
        assert Asking(url).register("s", '"int"') == 1
        broker.stop()
        broker.start()
        assert broker.schema_registry_url == url
        assert Asking(url).get("/subjects/s/versions/1")["id"] == 1


def test_a_secured_broker() -> None:
    with barnabas.Broker(security="SASL_PLAINTEXT", users={"alice": "a password"}, registry=True) as broker:
        assert Asking(broker.schema_registry_url).register("s", '"int"') == 1


def test_a_broker_without_one_imports_nothing_of_it() -> None:
    program = (
        "import sys, barnabas\n"
        "with barnabas.Broker(): pass\n"
        "print([each for each in sys.modules if each.startswith(('uvicorn', 'starlette', 'jsonschema', 'barnabas.registry'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[]\n"


def test_the_fixture(barnabas_registry: str) -> None:
    assert Asking(barnabas_registry).register("s", '"int"') == 1


def test_the_fixture_again(barnabas_registry: str) -> None:
    """The broker was reset meanwhile."""
    assert Asking(barnabas_registry).get("/subjects") == []
