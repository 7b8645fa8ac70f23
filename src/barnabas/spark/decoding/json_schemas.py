"""JSON Schemas: validators, and types of Spark.

| JSON Schema | Spark |
|---|---|
| `object` with `properties` | struct, in the order of the properties |
| `object` with only `additionalProperties` | map from string |
| `array` with `items` | array |
| `integer`, `number`, `boolean`, `string` | bigint, double, boolean, string |
| `enum` or `const` of strings | string |
| a union with `null`, by `type`, `anyOf` or `oneOf` | the other type |

A `$ref` is found in the schema itself or among the references that came with it; nothing is fetched from elsewhere. Another schema has no
type of Spark: then the caller gives the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jsonschema
import referencing
import referencing.exceptions
from jsonschema.validators import validator_for
from pyspark.sql import types
from referencing.jsonschema import DRAFT202012

from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.schema import Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.avro_schemas import as_json

__all__ = ["JsonSchema", "json_schema_of", "json_schema_type", "object_of", "validator"]

_SCALARS: dict[str, types.DataType] = {
    "integer": types.LongType(),
    "number": types.DoubleType(),
    "boolean": types.BooleanType(),
    "string": types.StringType(),
}
_DEEPEST = 64


class JsonSchema(NamedTuple):
    """A schema and what it needs, as JSON.

    Attributes:
        definition: the schema.
        needed: the schemas that it refers to, with the addresses by which it does.
    """

    definition: Any
    needed: tuple[tuple[str, Any], ...] = ()


def json_schema_of(source: SchemaSource | None, schema: Schema) -> JsonSchema:
    """Return a schema with what it needs.

    Args:
        source: reads the schemas that this one refers to; None if it refers to none.

    Raises:
        SchemaError: a reference cannot be resolved.
    """
    needed = needed_by_schema(source, schema)
    return JsonSchema(as_json(schema.text), tuple((name, as_json(each.text)) for name, each in needed))


def validator(schema: JsonSchema, what: str) -> Any:
    """Return a validator of `jsonschema`.

    Args:
        what: names the schema in an error.

    Raises:
        ValueError: it is not a valid JSON Schema.
    """
    kind = validator_for(schema.definition, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema.definition)
    except jsonschema.SchemaError as error:
        raise ValueError(f"{what} is not a valid JSON Schema: {error.message}") from None
    return kind(schema.definition, registry=_registry(schema))


def _registry(schema: JsonSchema) -> Any:
    resources = [
        (name, referencing.Resource.from_contents(each, default_specification=DRAFT202012))
        for name, each in schema.needed
    ]
    return referencing.Registry().with_resources(resources)


def json_schema_type(schema: JsonSchema) -> types.StructType:
    """Return Spark's type of a schema.

    Raises:
        ValueError: Spark has no type for it.
    """
    root = referencing.Resource.from_contents(schema.definition, default_specification=DRAFT202012)
    resolver = _registry(schema).with_resource("", root).resolver_with_root(root)
    found = _type(schema.definition, resolver, "the schema", 0)
    if not isinstance(found, types.StructType):
        raise ValueError("the schema is not one of an object with properties: give decode the type with schema=")
    return found


def _type(schema: Any, resolver: Any, where: str, depth: int) -> types.DataType:
    schema, resolver = _resolved(schema, resolver, where)
    if depth > _DEEPEST:
        raise ValueError(f"{where} contains itself, which Spark has no type for")
    kind = _kind(schema, where)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return types.ArrayType(_type(schema["items"], resolver, f"{where}[]", depth + 1))
    if kind == "object" and schema.get("properties"):
        fields = schema["properties"].items()
        return types.StructType(
            [types.StructField(name, _type(each, resolver, name, depth + 1)) for name, each in fields]
        )
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return types.MapType(
            types.StringType(), _type(schema["additionalProperties"], resolver, f"{where}'s values", depth + 1)
        )
    if kind not in _SCALARS:
        raise ValueError(f"{where} has no type of Spark: give decode the type with schema=")
    return _SCALARS[kind]


def object_of(schema: JsonSchema) -> Mapping[str, Any]:
    """Return the outermost object's schema, behind `$ref`; an empty one if it is none."""
    root = referencing.Resource.from_contents(schema.definition, default_specification=DRAFT202012)
    resolver = _registry(schema).with_resource("", root).resolver_with_root(root)
    found, _ = _resolved(schema.definition, resolver, "the schema")
    return found if isinstance(found, Mapping) else {}


def _resolved(schema: Any, resolver: Any, where: str) -> tuple[Any, Any]:
    """Return what a `$ref` names, and of a union with null the other schema."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            raise ValueError(f"{where} has no type of Spark: give decode the type with schema=")
        if "$ref" in schema:
            try:
                found = resolver.lookup(schema["$ref"])
            except referencing.exceptions.Unresolvable:
                raise ValueError(
                    f"{where} refers to {schema['$ref']}, which is not among the schema's references"
                ) from None
            schema, resolver = found.contents, found.resolver
            continue
        union = schema.get("anyOf") or schema.get("oneOf")
        others = [each for each in union or () if not (isinstance(each, Mapping) and each.get("type") == "null")]
        if len(others) != 1:
            return schema, resolver
        schema = others[0]
    raise ValueError(f"{where} refers to itself")


def _kind(schema: Mapping[str, Any], where: str) -> str:
    kinds = schema.get("type")
    named = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each not in (None, "null")]
    if len(named) == 1:
        return str(named[0])
    if not named and "properties" in schema:
        return "object"
    values = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if not named and values and all(isinstance(each, str) for each in values):
        return "string"
    raise ValueError(f"{where} has no type of Spark: give decode the type with schema=")
