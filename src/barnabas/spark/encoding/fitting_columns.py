"""Whether the columns of rows fit the fields of a schema, found before the first row.

A column that the schema does not have would be lost, and a field without a column has no value, so both are errors. A type fits if each of
its values does: an integer column in a wider field, for example. Nulls are a matter of rows.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types

from barnabas.words.nearest import did_you_mean

__all__ = ["check_columns"]

_INTEGERS = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_FLOATS = (types.FloatType, types.DoubleType)
_TEXTS = (types.StringType, types.CharType, types.VarcharType)


def check_columns(
    rows: types.DataType,
    schema: types.DataType,
    is_optional: Callable[[tuple[str, ...]], bool],
    path: tuple[str, ...] = (),
) -> None:
    """Check a type of rows against the type of a schema.

    Args:
        is_optional: whether a field, by its path, may have no column.
        path: where the types are.

    Raises:
        ValueError: a column or a field is missing, or a column has another type.
    """
    if isinstance(rows, types.StructType) and isinstance(schema, types.StructType):
        _check_names(rows.names, schema.names, is_optional, path)
        for each in rows.fields:
            check_columns(each.dataType, schema[each.name].dataType, is_optional, (*path, each.name))
    elif isinstance(rows, types.ArrayType) and isinstance(schema, types.ArrayType):
        check_columns(rows.elementType, schema.elementType, is_optional, (*path, "[]"))
    elif isinstance(rows, types.MapType) and isinstance(schema, types.MapType):
        check_columns(rows.keyType, schema.keyType, is_optional, (*path, "keys"))
        check_columns(rows.valueType, schema.valueType, is_optional, (*path, "values"))
    elif not _fits(rows, schema):
        where = f"column {'.'.join(path)}" if path else "the column"
        raise ValueError(
            f"{where} is {rows.simpleString()}, and the schema has {schema.simpleString()}: cast the column"
        )


def _check_names(
    rows: list[str], schema: list[str], is_optional: Callable[[tuple[str, ...]], bool], path: tuple[str, ...]
) -> None:
    for name in rows:
        if name not in schema:
            raise ValueError(
                f"the schema has no field for column {'.'.join((*path, name))}{did_you_mean(name, schema)}"
            )
    for name in schema:
        if name not in rows and not is_optional((*path, name)):
            raise ValueError(f"the schema's field {'.'.join((*path, name))} has no column{did_you_mean(name, rows)}")


def _fits(rows: types.DataType, schema: types.DataType) -> bool:
    if isinstance(rows, types.NullType):
        return True
    if isinstance(rows, _INTEGERS) and isinstance(schema, _INTEGERS):
        return _INTEGERS.index(type(rows)) <= _INTEGERS.index(type(schema))
    if isinstance(rows, _INTEGERS[:3]) and isinstance(schema, types.DoubleType):
        return True
    if isinstance(rows, _FLOATS) and isinstance(schema, _FLOATS):
        return _FLOATS.index(type(rows)) <= _FLOATS.index(type(schema))
    if isinstance(schema, types.DecimalType):
        if isinstance(rows, types.DecimalType):
            return rows.scale <= schema.scale and rows.precision - rows.scale <= schema.precision - schema.scale
        return isinstance(rows, _INTEGERS) and schema.precision - schema.scale >= 19
    if isinstance(rows, _TEXTS) and isinstance(schema, _TEXTS):
        return True
    return type(rows) is type(schema)
