"""Lines of users, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.console.password_file import BadPasswordFile, accepts, line_of, read_password_file

LINE = line_of("alice", "correct horse", bytes(16))


def test_a_password(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"# people\n{LINE}\n\n")
    users = read_password_file(str(tmp_path / "users"))
    assert accepts(users, "alice", "correct horse")
    assert not accepts(users, "alice", "correct hors")
    assert not accepts(users, "bob", "correct horse")
    assert "correct" not in LINE


def test_the_hash_is_scrypt_of_rfc_7914() -> None:
    """The third test vector of section 12, with our parameters' names: N=16384, r=8, p=1."""
    import base64
    import hashlib

    vector = hashlib.scrypt(b"pleaseletmein", salt=b"SodiumChloride", n=16384, r=8, p=1, maxmem=2**26, dklen=32)
    assert vector.hex().startswith("7023bdcb3afd7348461c06cd81fd38eb")
    assert line_of("a", "pleaseletmein", b"SodiumChloride").rpartition(":")[2] == base64.b64encode(vector).decode()


@pytest.mark.parametrize(
    "line",
    [
        "alice", "alice:secret", LINE.replace("scrypt", "md5"), LINE.replace("16384", "16385"), LINE.replace("16384", "1073741824"),
        LINE[:-3], LINE.rpartition(":")[0] + ":", ":" + LINE.partition(":")[2], LINE.replace(":8:", ":0:"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_users(tmp_path: Path, line: str) -> None:
    (tmp_path / "users").write_text(line)
    with pytest.raises(BadPasswordFile, match="line 1 is not NAME:scrypt") as found:
        read_password_file(str(tmp_path / "users"))
    assert "secret:" not in str(found.value)


def test_a_file_without_users(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("# none\n")
    with pytest.raises(BadPasswordFile, match="no user"):
        read_password_file(str(tmp_path / "users"))
    with pytest.raises(BadPasswordFile, match="no such file"):
        read_password_file(str(tmp_path / "absent"))


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "#a"])
def test_names_that_a_line_cannot_hold(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        line_of(name, "correct horse", bytes(16))
