"""Filters in CEL, Google's Common Expression Language, over a decoded record.

    value.amount > 100 && value.country == "DE"
    has(value.tags) && value.tags.exists(tag, tag == "late")
    key.startsWith("eu-") && headers["source"] == "shop"

| variable | is |
|---|---|
| `value` `key` | what is decoded: maps, lists, text, numbers; null |
| `headers` | a map of names to text, the last header of a name |
| `topic` `partition` `offset` | where the record is |
| `timestamp` `time` | epoch milliseconds, and the same as a timestamp; `time` is null if no calendar has it |
| `state` | `committed`, `aborted` or `held_back` |

An expression does not hold for a record that lacks a field of it, or has another type there. A record that cannot be decoded is not judged
(`Unjudged`), nor is one of which the expression needs a field where nothing but text was decoded; the search counts them and says so.

`record_variables` makes them of a record.

Bounds. The library evaluates in one call that holds the interpreter. Its cost grows with the number of elements, to the power of how deep
lists are looked through within each other; `map` and `filter` count twice, since the library copies the list for each element. A variable
that is looked at for each element multiplies it again. A record that would cost more than `COST_MAX` is not judged. Regular expressions
take time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import on_one_line, printable
from barnabas.words.requirements import needed_by

VARIABLES = ("value", "key", "headers", "topic", "partition", "offset", "timestamp", "time", "state")
CHARACTERS_MAX = 1_000
COST_MAX = 50_000
"""Elements that one evaluation may look at: some milliseconds."""

_PLACE = re.compile(r"<input>:(\d+):(\d+): (.*)")
_UNDEFINED = re.compile(r"Undefined variable or function: '([^']*)'")
_MACRO = re.compile(r"\.\s*(all|exists|exists_one|existsOne|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_FIELD = re.compile(
    r"(?<![\w.\])])(value|key)\s*(?:\[|\.\s*(?:(?:all|exists|exists_one|existsOne|map|filter)\s*\(|[A-Za-z_]\w*\b(?!\s*\()))"
)
"""A field of a part, or an element of it: what no text has."""
_COPYING = frozenset(("map", "filter"))
_DEPTH_MAX = 12
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_TEXT = re.compile(
    r"""[bBrR]{0,2}(\"\"\".*?(?<!\\)\"\"\"|'''.*?(?<!\\)'''|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*')""", re.DOTALL
)


class BadExpression(ValueError):
    """An expression cannot be used; the text is one sentence for people."""


class Unjudged(Exception):
    """An expression cannot be asked about a record; the text says why.

    Attributes:
        part: `key` or `value` if that part could not be decoded; empty for another reason.
    """

    def __init__(self, why: str, part: str = "") -> None:
        super().__init__(why)
        self.part = part


class Expression:
    """A compiled filter.

    Raises:
        BadExpression: it does not parse, or has a variable that there is not; the sentence has the place.
        NotInstalled: the library is missing.
    """

    def __init__(self, text: str) -> None:
        if len(text) > CHARACTERS_MAX:
            raise BadExpression(f"The filter has {len(text)} characters; at most {CHARACTERS_MAX} are possible.")
        with needed_by("a filter in CEL", "decoding"):
            import cel
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            raise BadExpression(_misread(text, str(error))) from None
        plain = _TEXT.sub('""', text)
        self._with_fields = set(_FIELD.findall(plain))
        bound = {match[2] for match in _MACRO.finditer(plain)}
        self._variables = [each for each in self._program.variables() if each in VARIABLES]
        for name in self._program.variables():
            if name not in VARIABLES and name not in bound:
                near = did_you_mean(name, VARIABLES)
                raise BadExpression(
                    f"The filter has “{printable(name)}”, which is not one of {', '.join(VARIABLES)}{near}."
                )
        self._depth, within = _depth(plain)
        self._again = [each for each in self._variables if each in within]
        self._literals = plain.count(",")

    def __repr__(self) -> str:
        return f"<Expression of {', '.join(self._variables) or 'nothing'}>"

    def holds(self, variable: Callable[[str], object], undecoded: Collection[str] = ()) -> bool:
        """Return whether the expression holds.

        Args:
            variable: returns a variable of the record; only those that the expression has are asked for.
            undecoded: `key` or `value`, or both, if they are no more than text, whatever the record has.

        Raises:
            Unjudged: it would cost too much, it needs a field of a part that is undecoded, or `variable` raises it.
            BadExpression: it has a function that there is not, or is not a yes or no.
        """
        known = {name: variable(name) for name in self._variables}
        if self._cost(known) > COST_MAX:
            raise Unjudged("it has too many elements for the filter")
        try:
            found = self._program.execute(known)
        except TypeError:
            for part in ("value", "key"):
                if part in undecoded and part in self._with_fields and known[part] is not None:
                    raise Unjudged(f"the {part} is text, which has no fields", part) from None
            return False
        except (KeyError, IndexError, ZeroDivisionError, OverflowError):
            return False
        except ValueError as error:
            raise Unjudged(on_one_line(str(error))) from None
        except RuntimeError as error:
            missing = _UNDEFINED.search(str(error))
            if missing is not None:
                raise BadExpression(f"The filter has no function “{printable(missing[1])}”.") from None
            if "regex" in str(error):
                raise BadExpression(
                    f"The filter has a bad regular expression: {on_one_line(str(error))[:200]}"
                ) from None
            return False
        if not isinstance(found, bool):
            raise BadExpression(f"The filter is {type(found).__name__} for a record, not true or false: compare it.")
        return found

    def _cost(self, known: dict[str, object]) -> int:
        counts = {name: _elements(each, COST_MAX) for name, each in known.items()}
        elements: int = max(1, self._literals + sum(counts.values()))
        again: int = max(1, sum(counts[name] for name in self._again))
        depth = min(max(1, self._depth), _DEPTH_MAX)
        return again * int(elements**depth)


def _elements(data: Any, most: int) -> int:
    """Return how many elements data has, in all its depths; counting ends above `most`."""
    count = 0
    pending = [data]
    while pending and count <= most:
        each = pending.pop()
        if isinstance(each, dict):
            count += len(each)
            pending.extend(inner for inner in each.values() if isinstance(inner, dict | list))
        elif isinstance(each, list):
            count += len(each)
            pending.extend(inner for inner in each if isinstance(inner, dict | list))
    return count


def _depth(plain: str) -> tuple[int, set[str]]:
    """Return how deep lists are looked through within each other, and the names within; of a text without its literals."""
    macros = {match.start(): match for match in _MACRO.finditer(plain)}
    deepest = 0
    within: set[str] = set()
    open_macros: list[tuple[int, int]] = []  # the level of its parenthesis, and its weight
    level = 0
    for place, character in enumerate(plain):
        if (macro := macros.get(place)) is not None:
            open_macros.append((level + 1, 2 if macro[1] in _COPYING else 1))
            deepest = max(deepest, sum(weight for _, weight in open_macros))
        if character == "(":
            level += 1
        elif character == ")":
            if open_macros and open_macros[-1][0] == level:
                open_macros.pop()
            level -= 1
        elif open_macros and level >= open_macros[0][0] and (name := _NAME.match(plain, place)) is not None:
            within.add(name[0])
    return deepest, within


def _misread(text: str, error: str) -> str:
    found = _PLACE.search(error)
    if found is None:
        return f"The filter cannot be read: {on_one_line(error)[:200]}"
    line, column, reason = int(found[1]), int(found[2]), found[3].removeprefix("Syntax error: ")
    # The list of all tokens that could stand there is of no help.
    reason = re.sub(r" expecting \{.*", "", reason).replace("'<EOF>'", "its end")
    lines = text.splitlines()
    place = f"character {column}" if len(lines) <= 1 else f"line {line}, character {column}"
    return f"The filter cannot be read at {place}: {on_one_line(reason)[:200]}."
