"""`barnabas cert dev`: the folder that it makes serves a listener and a client, and what it refuses."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.client.properties import read_properties
from barnabas.main import command_group
from barnabas.security.tls_settings import client_context, server_context
from tests.security.tls_pair import TlsPair


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_group(), ["cert", "dev", *arguments], prog_name="barnabas")


def settings(folder: Path, name: str, *, as_pkcs12: bool = False) -> dict[str, str]:
    path = folder / f"{name}.properties"
    if as_pkcs12:
        path.write_text(path.read_text().replace("#", ""))  # The later line of a setting counts.
    return dict(read_properties(str(path)))


@pytest.mark.parametrize("as_pkcs12", [False, True])
def test_a_node_and_a_user_connect(tmp_path: Path, as_pkcs12: bool) -> None:
    folder = tmp_path / "certs"
    assert run(str(folder), "--node", "node-1").exit_code == 0
    result = run(str(folder), "--user", "alice")  # The second call has the same authority.
    assert result.exit_code == 0
    assert result.output == f"user alice: {folder}/alice.properties\n"
    server = server_context(settings(folder, "node-1", as_pkcs12=as_pkcs12) | {"ssl.client.auth": "required"})
    pair = TlsPair(client_context(settings(folder, "alice", as_pkcs12=as_pkcs12)), server)
    pair.exchange()
    assert pair.server.peer_certificate()


def test_files_with_a_secret_are_the_owners(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    run(str(folder), "--node", "n=host.example,10.0.0.1")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {
        "ca.pem": 0o644,
        "ca-key.pem": 0o600,
        "trust.p12": 0o644,
        "store-password": 0o600,
        "n.pem": 0o600,
        "n.p12": 0o600,
        "n.properties": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_authority_alone(tmp_path: Path) -> None:
    assert run(str(tmp_path)).output == f"{tmp_path} has an authority; --node and --user make certificates\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--user", "../x"], "error: '../x' cannot be a name here (use letters"),
        (["--user", "ca"], "error: 'ca' cannot be a name here (use letters"),
        (["--user", "a", "--node", "a"], "error: a is given twice\n"),
    ],
)
def test_names_that_cannot_be(tmp_path: Path, arguments: list[str], error: str) -> None:
    result = run(str(tmp_path), *arguments)
    assert result.exit_code == 1
    assert result.output.startswith(error)
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_is_not_replaced(tmp_path: Path) -> None:
    run(str(tmp_path), "--user", "alice")
    before = (tmp_path / "alice.pem").read_text()
    result = run(str(tmp_path), "--user", "alice")
    assert result.exit_code == 1
    assert f"{tmp_path}/alice.pem is there" in result.output
    assert (tmp_path / "alice.pem").read_text() == before


def test_an_authority_whose_parts_do_not_fit(tmp_path: Path) -> None:
    run(str(tmp_path))
    (tmp_path / "ca-key.pem").write_text("nothing")
    result = run(str(tmp_path), "--user", "alice")
    assert result.exit_code == 1
    assert "are no authority" in result.output
