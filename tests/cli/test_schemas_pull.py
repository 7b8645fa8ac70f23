"""`barnabas schemas pull`: its words."""

from __future__ import annotations

from pathlib import Path

from barnabas.schemas.known_schemas import read_folder
from tests.cli.test_commands import run
from tests.schemas.conftest import server
from tests.schemas.registry_server import RegistryServer

__all__ = ["server"]


def pull(folder: Path, *words: str) -> tuple[int, str]:
    result = run("schemas", "pull", str(folder), *words)
    return result.exit_code, result.output.replace(str(folder), "FOLDER")


def filled(server: RegistryServer) -> str:
    server.add("orders-value", '"int"')
    server.add("orders-value", '"long"')
    server.add("users-value", "{}", "JSON")
    return server.url


def test_all_subjects_some_and_one_schema(server: RegistryServer, tmp_path: Path) -> None:
    url = filled(server)
    assert pull(tmp_path / "all", "--registry", url) == (0, f"FOLDER has 3 schemas of {url}\n")
    assert pull(tmp_path / "some", "--registry", url, "-s", "orders-value")[0] == 0
    assert read_folder(tmp_path / "some").subjects == {"orders-value": {1: 1, 2: 2}}
    assert pull(tmp_path / "one", "--registry", url, "--id", "3")[0] == 0
    assert list(read_folder(tmp_path / "one").schemas) == [3]


def test_credentials_come_from_a_file(server: RegistryServer, tmp_path: Path) -> None:
    url = filled(server)
    server.authorization = "Basic bmFtZTpwYXNzd29yZA=="
    code, said = pull(tmp_path / "schemas", "--registry", url)
    assert (code, "give credentials that may do this" in said) == (1, True)
    options = tmp_path / "registry.properties"
    options.write_text(f"url={url}\nbasic.auth.user.info=name:password\n")
    assert pull(tmp_path / "schemas", "--registry-config", str(options))[0] == 0


def test_bad_input_gets_one_sentence(server: RegistryServer, tmp_path: Path) -> None:
    url = filled(server)
    options = tmp_path / "registry.properties"
    options.write_text("basic.auth.userinfo=name:password\n")
    for words, sentence in (
        ([], "a schema registry needs an address, for example http://localhost:8081"),
        (["--registry", "localhost"], "'localhost' is not the address of a schema registry: write http://HOST:PORT"),
        (["--registry", url, "-s", "order-value"], "did you mean orders-value?"),
        (["--registry", url, "--id", "9"], "does not have schema 9"),
        (["--registry", url, "--registry-config", str(options)], "did you mean basic.auth.user.info?"),
    ):
        code, said = pull(tmp_path / "schemas", *words)
        assert code == 1
        assert sentence in " ".join(said.split())
        assert not (tmp_path / "schemas").exists()
