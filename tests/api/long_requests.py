"""Long requests of every API: for each array of a request, about as many bytes of its shortest elements as asked for.

| shape    | the array                                                                             |
|----------|---------------------------------------------------------------------------------------|
| empty    | the shortest elements there are: empty names, zeros, empty arrays in them             |
| named    | elements that name something on the node, each another: partitions by their numbers   |
| branched | a few elements in each inner array, and the outermost one as long as the bytes allow  |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.api import APIS
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.schema import FieldSpec, StructSpec
from tests.api.filled_requests import ALWAYS, Values

BRANCHES = 15
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
EMPTY: Values = {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16), "bool": False, "float64": 0.0}
"""The shortest value of each type; the others are numbers."""

_PREFIX = {ApiKey.DELETE_TOPICS: "no-", ApiKey.DELETE_GROUPS: "no-"}
"""What these delete is not there, so that the next request finds the node as it was."""

ACLS = frozenset((ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS))
LITERAL = 3
"""The number in requests about ACLs: as type, pattern, operation or permission 0 makes them unreadable."""

PARTITIONS = frozenset(("partition_index", "partition_indexes", "partition", "partitions", "index"))


class LongArray(NamedTuple):
    """An array of a request, by the fields that lead to it; the version is the newest that has it."""

    key: int
    version: int
    path: tuple[FieldSpec, ...]

    @property
    def name(self) -> str:
        return ".".join(field.name for field in self.path)

    @property
    def shapes(self) -> tuple[str, ...]:
        depth = sum(field.is_array for field in self.path)
        return ("empty", "named", "branched") if depth > 1 else ("empty", "named")


def arrays(key: int) -> list[LongArray]:
    """Return every array in an API's request, nested ones too."""
    served = APIS[key]
    spec = api(key).request_class.SPEC
    newest = {}
    for version in range(served.min_served, served.max_version + 1):
        for path in _paths(spec.structs, spec.root, version, ()):
            newest[tuple(field.name for field in path)] = LongArray(key, version, path)
    return list(newest.values())


def _paths(
    structs: dict[str, StructSpec], of: StructSpec, version: int, above: tuple[FieldSpec, ...]
) -> Iterator[tuple[FieldSpec, ...]]:
    for field in of.fields:
        if version in field.versions:
            path = (*above, field)
            if field.is_array:
                yield path
            if field.is_struct:
                yield from _paths(structs, structs[field.type], version, path)


def long_request(of: LongArray, shape: str, size_bytes: int, values: Values) -> Any:
    """Return a request with a long array.

    Args:
        values: of fields by name, as for `filled`.
    """
    maker = _Maker(of, shape, values)
    short, longer = (len(maker.request(count).encode(of.version)) for count in (BRANCHES, 2 * BRANCHES))
    count = max(1, size_bytes * BRANCHES // (longer - short))
    return maker.request(count)


class _Maker:
    def __init__(self, of: LongArray, shape: str, values: Values) -> None:
        self._of = of
        self._shape = shape
        self._class = api(of.key).request_class
        self._structs = self._class.SPEC.structs
        self._values = {**ALWAYS, **values}

    def request(self, count: int) -> Any:
        """Return the request; `count` is the length of the innermost array, or of the outermost if the shape is branched."""
        arrays = [field for field in self._of.path if field.is_array]
        lengths = dict.fromkeys(arrays, 1)
        if self._shape == "branched":
            lengths = dict.fromkeys(arrays, BRANCHES)
            lengths[arrays[0]] = count
        else:
            lengths[arrays[-1]] = count
        return self._struct(self._class.SPEC.root, self._class, self._of.path, lengths, 0)

    def _struct(
        self, of: StructSpec, owner: Any, path: tuple[FieldSpec, ...], lengths: dict[FieldSpec, int], number: int
    ) -> Any:
        given = {}
        for field in of.fields:
            if self._of.version not in field.versions:
                continue
            if path and field == path[0]:
                given[field.name] = self._on_path(field, path[1:], lengths)
            elif (value := self._beside(field, number, is_element=not path)) is not None:
                given[field.name] = value
        return owner(**given)

    def _on_path(self, field: FieldSpec, below: tuple[FieldSpec, ...], lengths: dict[FieldSpec, int]) -> Any:
        if not field.is_struct:
            return [self._plain(field, number) for number in range(lengths[field])]
        struct, owner = self._structs[field.type], getattr(self._class, field.type)
        if not field.is_array:
            return self._struct(struct, owner, below, lengths, 0)
        if below or self._shape == "empty":  # Only named elements of the innermost array differ.
            return [self._struct(struct, owner, below, lengths, 0)] * lengths[field]
        return [self._struct(struct, owner, below, lengths, number) for number in range(lengths[field])]

    def _beside(self, field: FieldSpec, number: int, *, is_element: bool) -> Any:
        """Return the value of a field that does not lead to the array: short in the array's elements, meaningful above them."""
        if is_element and self._shape == "empty":
            return None if field.is_struct or field.is_array or field.default is None else self._plain(field, number)
        if field.is_struct:
            known = self._values.get(field.name)
            if known is not None and not (isinstance(known, list) and known):
                return known
            one = self._struct(self._structs[field.type], getattr(self._class, field.type), (), {}, 0)
            return [one] if field.is_array else one
        if is_element and ((field.type == "string" and field.name in self._values) or field.name in PARTITIONS):
            return None if field.is_array else self._plain(field, number)
        return self._values.get(field.name)

    def _plain(self, field: FieldSpec, number: int) -> Any:
        assert isinstance(field.type, str), field
        if self._shape == "empty":
            return EMPTY.get(field.type, LITERAL if self._of.key in ACLS else 0)
        if field.type == "string":
            return f"{_PREFIX.get(ApiKey(self._of.key), '')}{_digits(number)}"
        if field.type == "uuid":
            return number.to_bytes(16, "big")
        return number if field.name in PARTITIONS else EMPTY.get(field.type, 0)


def _digits(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, len(DIGITS))
        text = DIGITS[digit] + text
        if not number:
            return text
