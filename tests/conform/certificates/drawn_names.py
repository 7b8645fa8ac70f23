"""Names of certificates in DER, and mapping rules, drawn from a seed: odd texts, tags and bytes among ordinary ones."""

from __future__ import annotations

from random import Random

__all__ = ["drawn_name", "drawn_rules"]

_ATTRIBUTES = [
    "2.5.4.3",
    "2.5.4.6",
    "2.5.4.7",
    "2.5.4.8",
    "2.5.4.9",
    "2.5.4.10",
    "2.5.4.11",
    "0.9.2342.19200300.100.1.25",
    "0.9.2342.19200300.100.1.1",
    "1.2.840.113549.1.9.1",
    "2.5.4.5",
    "2.5.4.12",
    "2.5.4.4",
    "2.5.4.42",
    "2.5.4.46",
    "2.5.4.13",
    "1.2.3.4.5678",
    "2.999.3",
    "2.5.4.97",
    "2.5.4.17",
]
_TAGS = (12, 12, 12, 19, 19, 20, 22, 27, 28, 30, 18, 4, 2, 1, 3)
_LETTERS = "abcXYZ019 ,=+<>#;\"\\ \r\n\t\0'()-./:?*@_äß漢😀\u200b\x7f"
_BYTES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c2 df e0 e1 ed ee ef f0 f1 f4 f5 ff")
_EXPRESSIONS = (
    r"^CN=(.*?),OU=ServiceUsers.*$", r"^CN=(.*?)(,.*)?$", ".*", "(.*)", r"CN=([^,]*),OU=(\w+).*", "^cn=(.*)$",
    "(?i)^cn=(.*),.*$", "CN=(a|ab)(.*)", "a*", "()", "^(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.*)$", r"C\/N=.*",
    r"[^=]*=([^\/]*)", r"(CN|OU)=(\d+)?.*", ".*?", "x?.*", "(((((((((.*)))))))))", r"^CN=\Qa\E.*", "(?:CN)=(.)?.*",
)  # fmt: skip
_REPLACEMENTS = ("", "user", r"\$1", r"a\/b", "x,y", r"\\", "$0")
_GROUPED = ("$1", "$1@$4", "$12", "$1-$2", "$01", "$10", "$9$11", "x$2y", r"$1\\", "$1,$2", "$100")
_NOT_RULES = ("", "default", "RULE:", "RULE:a/b", "RULE:(/$1/", "X", "DEFAULTX", "RULE:a/b/LU", "RULE:a/b/ L")


def drawn_name(random: Random) -> bytes:
    """Draw a name in DER: an RDNSequence of up to five RDNs."""
    return _element(0x30, b"".join(_rdn(random) for _ in range(random.randrange(6))))


def drawn_rules(random: Random) -> str:
    """Draw up to three rules, some of which are not valid; a replacement has groups only if the expression has."""
    rules = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        kind = random.random()
        if kind < 0.12:
            rules.append("DEFAULT")
        elif kind < 0.17:
            rules.append(random.choice(_NOT_RULES))
        else:
            expression = random.choice(_EXPRESSIONS)
            has_groups = "(" in expression.replace("(?", "")
            replacement = random.choice(_REPLACEMENTS + _GROUPED if has_groups else _REPLACEMENTS)
            rules.append(f"RULE:{expression}/{replacement}/{random.choice(['', '', 'L', 'U'])}")
    return random.choice([",", ", ", " , ", " ,"]).join(rules)


def _rdn(random: Random) -> bytes:
    return _element(0x31, b"".join(_attribute(random) for _ in range(random.choice([1, 1, 1, 2, 3]))))


def _attribute(random: Random) -> bytes:
    return _element(0x30, _identifier(random.choice(_ATTRIBUTES)) + _value(random))


def _value(random: Random) -> bytes:
    tag = random.choice(_TAGS)
    text = "".join(random.choice(_LETTERS) for _ in range(random.choice([0, 1, 2, 3, 5, 8, 200])))
    fixed = {
        1: b"\xff",
        2: b"\x05",
        3: b"\0" + text.encode(),
        28: text.encode("utf-32-be"),
        30: text.encode("utf-16-be"),
    }
    data = fixed.get(tag, text.encode())
    if tag not in fixed and random.random() < 0.3:
        data = bytes(random.choice(_BYTES) for _ in range(random.randrange(12)))
    return _element(tag, data)


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([tag, 128 + len(size)]) + size + content


def _identifier(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    content = b""
    for number in (40 * first + second, *rest):
        groups = [number & 127]
        while number := number >> 7:
            groups.append(128 | number & 127)
        content += bytes(reversed(groups))
    return _element(6, content)
