"""The name in a certificate, as Java writes it, and the rules that make a principal's name of it.

Kafka's principal of a certificate is `X500Principal.getName()`: RFC 2253, the last RDN first.

    CN=alice,OU=orders,O=example,C=DE
    1.2.840.113549.1.9.1=#160561406e2e63,CN=alice

- Nine attributes have a keyword. Of every other one, mail address and serial number too, the value's DER stands in hex.
- Within a value `,` `+` `=` `<` `>` `#` `;` `"` and the backslash are escaped, and spaces and returns at its ends; a NUL is `\\00`.
- Java decodes every kind of text as UTF-8, a BMPString too, whose letters so have a `\\00` in front of them.

`ssl.principal.mapping.rules` is `DEFAULT` (the name itself), or `RULE:expression/replacement/` with `L` or `U` at its end for lower or
upper case. The first rule whose expression matches the whole name decides. As in Java, `$1` is a group, and the replacement is made
wherever the expression is found in the name: with `.*` twice, the second time for the empty text at its end. Expressions are RE2, which
no name can keep busy. Deviations: what RE2 lacks (looking ahead and behind, back references) is an error when the rules are read, and so
is a `$` without a group in an expression that has none, which Kafka finds out when a client connects.

Sources: RFC 2253; the JDK's `AVA.toRFC2253String`; Kafka's `SslPrincipalMapper`, KIP-371.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.security.der import Element, elements, object_identifier
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.printable import on_one_line

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["NoMatchingRule", "PrincipalMapper", "certificate_name", "subject_name"]

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXTS = {12, 19, 20, 22, 27, 30}
"""Tags: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED = re.compile(r'[,=+<>#;"\\]')
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x85\u2028\u2029", "\n"))
_SEQUENCE, _VERSION = 0x30, 0xA0

_RULES = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<expression>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*"
)
SETTING = "ssl.principal.mapping.rules"


class NoMatchingRule(ValueError):
    """None of the rules matches a name: there is no principal, and Kafka ends the connection."""


def certificate_name(der: bytes) -> str:
    """Return the subject of a certificate, as Java writes it.

    Args:
        der: the certificate.

    Raises:
        ValueError: it is not a certificate.
    """
    try:
        (certificate,) = elements(der)
        signed = next(elements(certificate.content))
        fields = [each for each in elements(signed.content) if each.tag != _VERSION]
        subject = fields[4]  # After serial number, algorithm, issuer and validity.
    except (StopIteration, IndexError):
        raise ValueError("not a certificate") from None
    return _name(subject.whole)


def subject_name(certificate: Certificate) -> str:
    """Return the subject of a certificate of `cryptography`, as Java writes it."""
    return _name(certificate.subject.public_bytes())


def _name(der: bytes) -> str:
    (whole,) = elements(der)
    if whole.tag != _SEQUENCE:
        raise ValueError("not a name")
    return ",".join(
        "+".join(map(_attribute, elements(each.content))) for each in reversed(list(elements(whole.content)))
    )


def _attribute(pair: Element) -> str:
    kind, value = elements(pair.content)
    identifier = object_identifier(kind.content)
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or identifier}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_decoded(value.content))}"


def _decoded(data: bytes) -> str:
    """Decode UTF-8 as Java does: each thing that is not UTF-8 becomes one U+FFFD, a surrogate too, whole or begun."""
    return _SURROGATE.sub(b"\xff", data).decode(errors="replace")


def _escaped(text: str) -> str:
    text = _ESCAPED.sub(r"\\\g<0>", text).replace("\0", "\\00")
    inner = text.strip(" \r")
    if not inner:
        return "".join(f"\\{each}" for each in text)
    before, _, after = text.partition(inner)
    return "".join(f"\\{each}" for each in before) + inner + "".join(f"\\{each}" for each in after)


class PrincipalMapper:
    """The rules of `ssl.principal.mapping.rules`.

    Args:
        rules: as the setting has them, separated by commas.

    Raises:
        SecuritySettingError: a rule is not valid.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules = _parsed(rules.strip())
        self._text = rules

    def __repr__(self) -> str:
        return f"<PrincipalMapper {self._text}>"

    def __call__(self, name: str) -> str:
        """Return the principal's name for a certificate's.

        Raises:
            NoMatchingRule: no rule matches.
        """
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return mapped
        raise NoMatchingRule(f"No rules apply to {name}, rules {self._text}")


class _Rule(NamedTuple):
    """A rule. Attributes: `expression` is None for `DEFAULT`; `replacement` has texts, and numbers of groups."""

    expression: Any
    replacement: tuple[str | int, ...]
    change_case: Callable[[str], str]

    def apply(self, name: str) -> str | None:
        if self.expression is None:
            return name
        text = name.translate(_LINE_ENDS)  # Java's dot matches no end of a line, RE2's matches all but this one.
        if self.expression.fullmatch(text) is None:
            return None
        parts, position = [], 0
        for found in self.expression.finditer(text):
            parts.append(name[position : found.start()])
            parts += [each if isinstance(each, str) else _group(name, found, each) for each in self.replacement]
            position = found.end()
        return self.change_case("".join(parts) + name[position:])


def _group(name: str, found: Any, number: int) -> str:
    start, end = found.span(number)
    return name[start:end] if start >= 0 else ""


def _parsed(text: str) -> list[_Rule]:
    rules, position = [], 0
    while position < len(text):
        if text[position] == "," or text[position].isspace():  # Kafka ignores empty rules.
            position += 1
            continue
        found = _RULES.match(text, position)
        if found is None or (found.end() < len(text) and text[found.end()] != ","):
            raise _invalid(text[position:], "a rule is DEFAULT or RULE:expression/replacement/ with L or U at its end")
        rules.append(_rule(found))
        position = found.end()
    return rules


def _rule(found: re.Match[str]) -> _Rule:
    import re2

    change_case = {"L": str.lower, "U": str.upper}.get(found["case"] or "", str)
    if found["default"]:
        return _Rule(None, (), str)
    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(found["expression"], options)
    except re2.error as error:
        reason = error.args[0]
        raise _invalid(
            found[0], reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
    return _Rule(expression, tuple(_replacement(found[0], found["replacement"], expression.groups)), change_case)


def _replacement(rule: str, text: str, groups: int) -> list[str | int]:
    """Return the parts of a replacement: `$12` is the longest number that has a group, `$9` without such a group is text."""
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        mark = text[position]
        position += 1
        if mark == "\\":
            parts.append(text[position : position + 1])
            position += 1
        elif mark == "$":
            digits = re.match(r"[0-9]+", text[position:])
            if digits is None:
                raise _invalid(rule, "a $ in the replacement stands for no group: write \\$")
            count = len(digits[0])
            while count > 1 and int(digits[0][:count]) > groups:
                count -= 1
            number = int(digits[0][:count])
            if number > groups and not groups:
                raise _invalid(rule, f"the expression has no group for ${number}")
            parts.append(number if number <= groups else f"${digits[0][:count]}")
            position += count
        else:
            parts.append(mark)
    return parts


def _invalid(rule: str, why: str) -> SecuritySettingError:
    return SecuritySettingError(SETTING, f"Invalid rule: {on_one_line(rule)}: {on_one_line(why)}")
