"""Words for types."""

from barnabas.registry.avro_types import Array, Primitive, Union, type_name


def test_words() -> None:
    string = Primitive("string")
    assert [type_name(each) for each in (string, Array(string), Union((string,)))] == ["string", "array", "union"]
