"""Properties files: a table that java.util.Properties 17 computed, and whatever it stores is read back."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.properties import parse_properties, read_properties

READ_BY_JAVA: dict[str, dict[str, str]] = {
    "a=1\nb:2\nc 3\nd\t4\ne\f5": {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"},
    "  a = 1 \nb : 2\t\nc   3": {"a": "1 ", "b": "2\t", "c": "3"},
    "a==1\nb=:2\nc = = 3\nd : : 4": {"a": "=1", "b": ":2", "c": "= 3", "d": ": 4"},
    "flag\nempty=\n=nameless": {"flag": "", "empty": "", "": "nameless"},
    "a=1\na=2": {"a": "2"},
    "# a=1\n  ! b=2\n#c=3\\\nd=4\n\n \t\f\ne=5#6": {"d": "4", "e": "5#6"},
    "a=1,\\\n   2,\\\r\n\t3\nb=\\\n\\\n4": {"a": "1,2,3", "b": "4"},
    "a=1\\\n# no comment": {"a": "1# no comment"},
    "a=1\\\n\nb=2": {"a": "1", "b": "2"},
    "\\\n# a comment\na=1": {"a": "1"},
    "a=1\\\\\nb=2\\\\\\\n3": {"a": "1\\", "b": "2\\3"},
    "a=1\\": {"a": "1"},
    "a\\=b\\:c\\ d=\\=1\\:": {"a=b:c d": "=1:"},
    "\\#a=1\n\\!b=2": {"#a": "1", "!b": "2"},
    "a=\\t\\n\\r\\f\\b\\'\\\\": {"a": "\t\n\r\fb'\\"},
    "\\u0061=\\u00E9\\uD83D\\uDE00\nb=\\\\u0061": {"a": "é😀", "b": "\\u0061"},
    "a=1\rb=2\r\nc=3": {"a": "1", "b": "2", "c": "3"},
    "a=\x0b1\x85\u2028\u00a0": {"a": "\x0b1\x85\u2028\u00a0"},
    "C:\\dir=D:\\new": {"C": "dir=D:\new"},
}


@pytest.mark.parametrize("text", READ_BY_JAVA)
def test_a_text_means_what_it_means_to_java(text: str) -> None:
    assert parse_properties(text) == READ_BY_JAVA[text]


@pytest.mark.parametrize("text", ["a=\\u00", "a=\\u00g0", "\\u=1", "a=\\u"])
def test_an_unfinished_unicode_escape_is_an_error_as_in_java(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)


def test_a_backslash_alone_at_the_end_is_no_property() -> None:
    assert parse_properties("a=1\n\\") == parse_properties("a=1\n\\\n") == {"a": "1"}


def stored(properties: dict[str, str]) -> str:
    """As java.util.Properties.store writes them."""
    controls = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}

    def escaped(text: str, spaces: str) -> str:
        text = re.sub(r"[\\=:#!]", r"\\\g<0>", text)
        text = re.sub(spaces, r"\\ ", text)
        return re.sub(r"[^ -~]", lambda found: controls.get(found[0]) or utf_16(found[0]), text)

    return "".join(f"{escaped(key, ' ')}={escaped(value, '^ ')}\n" for key, value in properties.items())


def utf_16(character: str) -> str:
    encoded = character.encode("utf-16-be")
    return "".join(f"\\u{encoded[at : at + 2].hex()}" for at in range(0, len(encoded), 2))


texts = st.text(st.sampled_from("ab=:#! \t\f\r\n\\u0é😀") | st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts, texts))
def test_what_java_stores_is_read_back(properties: dict[str, str]) -> None:
    assert parse_properties(stored(properties)) == properties


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"\xca\xfe\0\0")
    with pytest.raises(ValueError, match=r"client\.properties as a properties file: it is not text"):
        read_properties(str(path))


def test_a_mistake_is_named_by_its_line_and_no_password_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"a=1\nssl.key.password=hunter2\\\n   \\u12")
    with pytest.raises(
        ValueError, match=r"as a properties file: line 3: \\u without four hexadecimal digits"
    ) as caught:
        read_properties(str(path))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_has_the_encoding_that_fits(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("ü = 1\r\nb = 2\r\n".encode(encoding))
    assert read_properties(str(path)) == {"ü": "1", "b": "2"}
