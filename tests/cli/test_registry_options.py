"""The options that name a registry, and the line that a command prints for an error of the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.registry_options import registry_failures, settings_of
from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects
from tests.cli.test_commands import run
from tests.schemas.conftest import server
from tests.schemas.registry_server import RegistryServer

__all__ = ["server"]


def test_an_address_counts_before_the_file(tmp_path: Path) -> None:
    options = tmp_path / "registry.properties"
    options.write_text("url=http://one:1\nbasic.auth.user.info=name:secret\n")
    assert settings_of(None, str(options)).urls == ("http://one:1",)
    found = settings_of("http://two:2", str(options))
    assert found.urls == ("http://two:2",)
    assert found.authorization is not None
    options.write_text("url=\\u00")
    with pytest.raises(Failure, match="key=value"):
        raise_readable(str(options))


def raise_readable(path: str) -> None:
    try:
        settings_of(None, path)
    except Failure as failure:
        raise Failure(failure.format_message()) from None


def test_credentials_and_no_answer(server: RegistryServer) -> None:
    server.authorization = "Basic bmFtZTpwYXNzd29yZA=="
    done = run("schemas", "list", "-r", server.url)
    assert (done.exit_code, "give credentials that may do this" in done.stderr) == (1, True)
    done = run("schemas", "list", "-r", server.url.replace("//", "//name:password@"))
    assert (done.exit_code, done.stderr) == (0, "")
    done = run("schemas", "list")
    assert (done.exit_code, "a schema registry needs an address" in done.stderr) == (1, True)


def test_the_subject_that_was_meant(server: RegistryServer) -> None:
    server.add("orders-value", '"int"')
    subjects = Subjects(RegistrySettings.of(server.url))
    for message, hint in (
        ("there is no version 1 of subject order-value (40401)", "did you mean orders-value?"),
        ("there is no version 7 of subject orders-value (40402)", None),
        ("there is no schema 7 (40403)", None),
    ):
        with pytest.raises(Failure) as raised, registry_failures(subjects):
            raise SchemaNotFound(message)
        assert raised.value.hint == hint
