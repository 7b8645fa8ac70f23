"""`import barnabas`: what it exports, and that it loads none of it before it is used."""

import subprocess
import sys

import pytest

import barnabas


def loaded_by(code: str) -> list[str]:
    show = "import sys; print(*(name for name in sys.modules if name.startswith(('barnabas.', 'asyncio'))))"
    return subprocess.run(
        [sys.executable, "-c", f"{code}; {show}"], check=True, capture_output=True, text=True
    ).stdout.split()


def test_every_exported_name_is_there() -> None:
    for name in barnabas.__all__:
        assert getattr(barnabas, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nope"):
        barnabas.Nope  # noqa: B018


def test_the_import_loads_nothing_else() -> None:
    assert loaded_by("import barnabas") == ["barnabas.imported_when_used"]


def test_an_error_is_loaded_without_the_broker() -> None:
    assert loaded_by("from barnabas import KafkaError") == [
        "barnabas.imported_when_used",
        "barnabas.protocol",
        "barnabas.protocol.errors",
    ]


def test_a_bad_setting_raises_the_exported_error() -> None:
    with pytest.raises(barnabas.ConfigError, match=r"num\.partitions"), barnabas.Broker(config={"num.partitions": "x"}):
        pass


def test_the_pytest_plugin_loads_nothing_else() -> None:
    assert [name for name in loaded_by("import barnabas.pytest_plugin") if name.startswith("barnabas")] == [
        "barnabas.imported_when_used",
        "barnabas.pytest_plugin",
    ]
