"""Write the type stubs of the message classes, `src/barnabas/protocol/messages.pyi`, from the definitions.

python tools/write_stubs.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCE))

from barnabas.protocol.message import constructor_default, first_flexible  # noqa: E402
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec, message_names, message_spec  # noqa: E402

OUTPUT = SOURCE / "barnabas/protocol/messages.pyi"
TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Records",
}
HEAD = """# Written by tools/write_stubs.py from schema.json; do not edit.
from typing import ClassVar, Literal

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.primitives import RecordSlice

Records = bytes | bytearray | memoryview | RecordSlice

def message_class(name: str) -> type[Message]: ...
def metadata_record_class(type_id: int) -> type[Message]: ...
def coordinator_key_class(family: str, type_id: int) -> type[Message]: ...
def coordinator_value_class(family: str, type_id: int) -> type[Message]: ...
"""


def annotation(field: FieldSpec, owner: str) -> str:
    """The Python type of a field."""
    name = f"{owner}.{field.type}" if field.is_struct else TYPES.get(field.type, "int")
    if field.is_array:
        name = f"list[{name}]"
    nullable = field.nullable.high >= 0 or field.default is None
    return f"{name} | None" if nullable else name


def struct_lines(spec: StructSpec, owner: str, indent: str) -> list[str]:
    """Attributes and constructor of one class."""
    lines = [f"{indent}{field.name}: {annotation(field, owner)}" for field in spec.fields]
    parameters = []
    for field in spec.fields:
        written = constructor_default(field).replace("'", '"')
        default = "..." if written == "FRESH" or field.type == "uuid" else written
        parameters.append(f"{indent}    {field.name}: {annotation(field, owner)} = {default},")
    if not parameters:
        return [*lines, f"{indent}def __init__(self) -> None: ..."]
    return [
        *lines,
        f"{indent}def __init__(",
        f"{indent}    self,",
        f"{indent}    *,",
        *parameters,
        f"{indent}) -> None: ...",
    ]


def message_lines(spec: MessageSpec) -> list[str]:
    lines = ["", f"class {spec.name}(Message):"]
    key = "None" if spec.api_key is None else f"Literal[{spec.api_key}]"
    flexible = first_flexible(spec.flexible, spec.valid)
    lines += [
        f"    # {spec.kind} v{spec.valid.low}-{spec.valid.high}, flexible from {flexible}",
        f"    API_KEY: ClassVar[{key}]",
    ]
    for struct in spec.structs.values():
        lines += [f"    class {struct.name}(Struct):", *struct_lines(struct, spec.name, " " * 8), ""]
    return [*lines, *struct_lines(spec.root, spec.name, " " * 4)]


def stubs() -> str:
    """The text of the stub file."""
    lines = [line for name in message_names() for line in message_lines(message_spec(name))]
    return HEAD + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the file is current")
    arguments = parser.parse_args()
    text = stubs()
    if arguments.check:
        return 0 if OUTPUT.exists() and OUTPUT.read_text() == text else 1
    OUTPUT.write_text(text)
    print(f"{OUTPUT}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
