"""`sasl.jaas.config` means what it means to Java, and errors never quote it."""

from __future__ import annotations

import pytest

from barnabas.security.jaas import jaas_text, parse_jaas
from barnabas.security.setting_error import SecuritySettingError

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text: str) -> dict[str, str]:
    return dict(parse_jaas(f"{MODULE} required {text};").options)


def test_a_line() -> None:
    entry = parse_jaas(f'{MODULE} Required\n  username="alice"\n  password="p w";')
    assert (entry.module, entry.flag) == (MODULE, "required")
    assert entry.options == {"username": "alice", "password": "p w"}
    assert "p w" not in repr(entry)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        ("a-b_c$d.e1", "a-b_c$d.e1"),
        ("ünïcode日本", "ünïcode日本"),
        ('"a b"', "a b"),
        ("'a\"b'", 'a"b'),
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"\n\t\r\b\f\a\v\q"', "\n\t\r\b\f\x07\x0bq"),
        (r'"\101\60x\4011"', "A0x 11"),
        ('"a;b=c//d/*e"', "a;b=c//d/*e"),
        ('""', ""),
        ('"1234"', "1234"),
        ("a /* comment\n */", "a"),
        ("a // comment\n", "a"),
        ("a / comment too\n", "a"),
    ],
)
def test_values_are_read_as_java_reads_them(written: str, value: str) -> None:
    assert options(f"password={written}") == {"password": value}


def test_a_later_option_wins_and_spaces_do_not_count() -> None:
    assert options("a = b\ta=c   d\n=e") == {"a": "c", "d": "e"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no login module"),
        ("  // nothing\n", "names no login module"),
        (f"{MODULE} required a=b; {MODULE} required c=d;", "names 2 login modules"),
        (MODULE, "has none of required"),
        (f"{MODULE} username=hidden;", "has none of required"),
        (f"{MODULE} hidden a=b;", "has none of required"),
        ('= required a="hidden";', "does not begin with the class"),
        (f"{MODULE} required", "does not end with a semicolon"),
        (f'{MODULE} required password="hidden"', "does not end with a semicolon"),
        (f'{MODULE} required password="hidden;', "does not end with a semicolon"),
        (f"{MODULE} required password;", "option 1 is not NAME=VALUE"),
        (f"{MODULE} required username=a password=1hidden;", "option 2 is not NAME=VALUE"),
        (f"{MODULE} required password=-1;", "option 1 is not NAME=VALUE"),
        (f"{MODULE} required password=hid!den;", "option 2 is not NAME=VALUE"),
        (f"{MODULE} required password=hid=den;", "option 2 is not NAME=VALUE"),
        (f"{MODULE} required password=", "option 1 is not NAME=VALUE"),
        (f"{MODULE} required password=/hidden/;", "option 1 is not NAME=VALUE"),
    ],
)
def test_other_lines_are_refused_without_quoting_them(text: str, why: str) -> None:
    with pytest.raises(SecuritySettingError) as refused:
        parse_jaas(text, "listener.name.x.plain.sasl.jaas.config")
    assert str(refused.value).startswith(f"listener.name.x.plain.sasl.jaas.config: {why}")
    assert "hid" not in str(refused.value)
    assert "den" not in str(refused.value)
    assert refused.value.setting == "listener.name.x.plain.sasl.jaas.config"


def test_distributions_put_a_prefix_before_the_class() -> None:
    entry = parse_jaas(f"kafkashaded.{MODULE} required;")
    assert entry.is_of(MODULE)
    assert not parse_jaas(f"evil{MODULE} required;").is_of(MODULE)


@pytest.mark.parametrize("password", ["alice-secret", 'a "b" \\ c;', "two\nlines\r", "// no comment", "žluť", "'"])
def test_a_line_that_is_written_is_read(password: str) -> None:
    options = {"username": "alice", "user_alice@example.org": password}
    text = jaas_text("com.example.Module", options)
    assert text.startswith('com.example.Module required username="alice" "user_alice@example.org"=')
    assert "\n" not in text
    found = parse_jaas(text)
    assert (found.module, found.options) == ("com.example.Module", options)
