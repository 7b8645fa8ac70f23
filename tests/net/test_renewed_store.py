"""The stores of one listener: when they are read again, and what a change of a file is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.net.renewed_store import RenewedStore
from tests.security.certificates import authority


class Files:
    """A key store and a trust store, each in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key, self.trust = folder / "node.pem", folder / "ca.pem"
        self.trust.write_text(authority().certificate)
        self.renew()

    def renew(self, name: str = "CN=node") -> None:
        """Write another certificate, beside the old one, and renamed over it."""
        issued = authority().issue(name, hosts=["localhost"])
        beside = self.folder / "new.pem"
        beside.write_text(issued.key + issued.certificate)
        beside.replace(self.key)

    def settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def store(files: Files) -> RenewedStore:
    return RenewedStore("OUT", files.settings(), is_server=True)


def test_nothing_is_read_that_has_not_changed(store: RenewedStore) -> None:
    assert store.judge({}) is None
    assert store.judge({"listener.name.other.ssl.keystore.location": "/x", "log.cleaner.threads": "2"}) is None
    assert store.judge({"listener.name.out.ssl.client.auth": "required"}) is None


def test_a_renewed_file(files: Files, store: RenewedStore) -> None:
    before, certificate = store.context(), store.certificate
    files.renew()
    judged = store.judge({})
    assert judged is not None
    assert judged.why is None
    assert store.context() is before  # Until it is taken.
    store.take(judged)
    assert store.context() is not before
    assert store.certificate != certificate
    assert store.judge({}) is None


def test_a_renewed_trust_store(files: Files, store: RenewedStore) -> None:
    files.trust.write_text(authority().certificate * 2)
    judged = store.judge({})
    assert judged is not None
    assert judged.loaded is not None


def test_a_link_that_is_pointed_elsewhere(tmp_path: Path) -> None:
    """Kubernetes mounts a secret so: the name is a link into a folder, which is a link that changes."""
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        Files(tmp_path / version)
        stamp = (1_700_000_000, 1_700_000_000)
        os.utime(tmp_path / version / "node.pem", stamp)
        os.utime(tmp_path / version / "ca.pem", stamp)
    (tmp_path / "..data").symlink_to("1")
    for name in ("node.pem", "ca.pem"):
        (tmp_path / name).symlink_to(Path("..data") / name)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    store = RenewedStore("OUT", settings, is_server=True)
    (tmp_path / "..new").symlink_to("2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    judged = store.judge({})
    assert judged is not None
    assert judged.loaded is not None


def test_a_rejected_file_is_rejected_once(files: Files, store: RenewedStore) -> None:
    before = store.context()
    files.renew("CN=other")
    judged = store.judge({})
    assert judged is not None
    assert "DistinguishedName does not match" in str(judged.why)
    assert repr(judged) == "<Judged rejected>"
    store.take(judged)
    assert store.context() is before
    assert store.judge({}) is None
    assert store.judge({}, again=True) is not None
    files.renew()
    good = store.judge({})
    assert good is not None
    assert good.why is None


def test_a_missing_file_changes_nothing(files: Files, store: RenewedStore) -> None:
    files.key.unlink()
    judged = store.judge({})
    assert judged is not None
    assert "No such file" in str(judged.why)


def test_settings_of_the_metadata_hold_until_they_are_deleted(files: Files, store: RenewedStore) -> None:
    (files.folder / "elsewhere").mkdir()
    elsewhere = Files(files.folder / "elsewhere")
    dynamic = {"listener.name.out.ssl.keystore.location": str(elsewhere.key)}
    for settings in (dynamic, {}):
        before = store.certificate
        judged = store.judge(settings)
        assert judged is not None
        store.take(judged)
        assert store.certificate != before
        assert store.judge(settings) is None


def test_repr(store: RenewedStore) -> None:
    assert repr(store).startswith("<RenewedStore OUT accepts CN=node, serial number ")
