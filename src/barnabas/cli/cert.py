"""`barnabas cert dev`: a certificate authority in a folder, and certificates of nodes and users, for development.

    FOLDER/
        ca.pem  ca-key.pem         the authority
        trust.p12                  trusts it, for Java's clients of before 2.7, which read no PEM
        store-password             of every PKCS12 file here
        NAME.pem                   a node's or user's key, its certificate and the authority's
        NAME.p12                   the same
        NAME.properties            the settings that use NAME.pem: of a listener, or for --command-config

A second call keeps what is there and adds to it. Each file is written whole under another name first; files with a secret have mode 0600.
The authority is the last file of its part, so a kill leaves a folder in which the command begins again.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.security.dev_certificates import DevelopmentAuthority, IssuedCertificate
from barnabas.words.requirements import install_command

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAKEN = ("ca", "ca-key", "trust", "store-password")


@click.group()
def cert() -> None:
    """Certificates for development: an authority, nodes, users."""


@cert.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--node", "nodes", metavar="NAME[=HOST,…]", multiple=True, help="A node, and its hosts; repeat.")
@click.option("--user", "users", metavar="NAME", multiple=True, help="A user; repeat.")
@click.option("--days", type=click.IntRange(1, 3650), default=825, show_default=True, help="Certificates are valid.")
def dev(folder: Path, nodes: tuple[str, ...], users: tuple[str, ...], days: int) -> None:
    """Make certificates for development in FOLDER.

    Nodes are for localhost unless they have other hosts. Not for production: there are no revocations.

    \b
    barnabas cert dev certs --node node-1 --user alice
    """
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise Failure("barnabas cert dev needs cryptography", install_command("security")) from None
    wanted = [_node(text) for text in nodes] + [(name, ()) for name in users]
    for name, _ in wanted:
        _check(folder, name, [each for each, _ in wanted])
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        password = _password(folder)
        authority = _authority(folder, password)
        for name, hosts in wanted:
            issued = authority.issue(f"CN={name}", hosts=hosts, days=days)
            _write_store(folder, name, issued, password)
            click.echo(f"{'node' if hosts else 'user'} {name}: {folder / name}.properties")
    except OSError as error:
        raise Failure(f"cannot write {error.filename or folder}: {error.strerror}") from None
    if not wanted:
        click.echo(f"{folder} has an authority; --node and --user make certificates")


def _node(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, hosts = text.partition("=")
    return name, tuple(filter(None, hosts.split(","))) or ("localhost", "127.0.0.1", "::1")


def _check(folder: Path, name: str, names: list[str]) -> None:
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise Failure(
            f"'{name}' cannot be a name here", "use letters, digits, '.', '_' and '-', and not the name of another file"
        )
    if names.count(name) > 1:
        raise Failure(f"{name} is given twice")
    if (folder / f"{name}.pem").exists():
        raise Failure(f"{folder / name}.pem is there", "remove it to have a new certificate")


def _password(folder: Path) -> str:
    path = folder / "store-password"
    if not path.exists():
        _write(path, f"{secrets.token_urlsafe(18)}\n", is_secret=True)
    return path.read_text().strip()


def _authority(folder: Path, password: str) -> DevelopmentAuthority:
    certificate, key = folder / "ca.pem", folder / "ca-key.pem"
    now_ms = int(time.time() * 1000)
    if certificate.exists():
        try:
            return DevelopmentAuthority.load(key.read_text(), certificate.read_text(), now_ms)
        except ValueError as error:
            raise Failure(
                f"{certificate} and {key} are no authority: {error}", "remove both, or choose another folder"
            ) from None
    authority = DevelopmentAuthority.create(now_ms)
    _write(key, authority.key(), is_secret=True)
    _write(folder / "trust.p12", authority.trust_store(password))
    _write(certificate, authority.certificate)
    return authority


def _write_store(folder: Path, name: str, issued: IssuedCertificate, password: str) -> None:
    _write(folder / f"{name}.p12", issued.pkcs12(password, alias=name), is_secret=True)
    _write(folder / f"{name}.properties", _properties(folder.absolute(), name, password), is_secret=True)
    _write(folder / f"{name}.pem", issued.key + issued.certificate + issued.authority, is_secret=True)


def _properties(folder: Path, name: str, password: str) -> str:
    return f"""security.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.location={_escaped(folder)}/{name}.pem
ssl.truststore.type=PEM
ssl.truststore.location={_escaped(folder)}/ca.pem
# The same as PKCS12:
#ssl.keystore.type=PKCS12
#ssl.keystore.location={_escaped(folder)}/{name}.p12
#ssl.keystore.password={password}
#ssl.truststore.type=PKCS12
#ssl.truststore.location={_escaped(folder)}/trust.p12
#ssl.truststore.password={password}
"""


def _escaped(path: Path) -> str:
    """Return a path as a properties file has it."""
    return str(path).replace("\\", "\\\\")


def _write(path: Path, data: str | bytes, *, is_secret: bool = False) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_secret else 0o644)
    with open(descriptor, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    partial.replace(path)
