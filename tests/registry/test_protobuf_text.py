"""The text of a compiled file compiles to the same file again."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.registry.protobuf_compiler import compile_protobuf
from barnabas.registry.protobuf_text import NotWritten, json_name_of, protobuf_text

PROTO3 = """
syntax = "proto3";
package shop.orders;
import "google/protobuf/timestamp.proto";
option java_package = "com.shop";
option java_multiple_files = true;
enum Kind { option allow_alias = true; NONE = 0; FIRST = 1; ERSTE = 1 [deprecated = true]; reserved 5 to 7, 9; reserved "OLD"; }
message Order {
  message Line { string sku = 1; sint32 count = 2; }
  enum State { OPEN = 0; }
  string order_id = 1 [json_name = "number"];
  repeated Line lines = 2;
  repeated int32 packed_numbers = 3 [packed = false];
  map<string, Line> by_sku = 4;
  oneof payment { string card = 5; bytes voucher = 6; }
  optional double rebate = 7;
  google.protobuf.Timestamp at = 8;
  State state = 9;
  reserved 20, 30 to max;
  reserved "old_name";
}
service Orders { rpc Place (Order) returns (stream Order) { option deprecated = true; } }
"""
PROTO2 = r"""
syntax = "proto2";
message Order {
  required string id = 1;
  optional int32 count = 2 [default = 7];
  optional string text = 3 [default = "a \"quoted\" \\ text"];
  optional bytes raw = 4 [default = "\001\"x"];
  optional bool is_open = 5 [default = true];
  repeated int64 many = 6 [packed = true];
}
"""


@pytest.mark.parametrize("text", [PROTO3, PROTO2], ids=["proto3", "proto2"])
def test_the_text_of_a_compiled_file(text: str) -> None:
    compiled = compile_protobuf(text, {})
    assert compiled.text == text
    again = compile_protobuf(compiled.serialized, {})
    assert again.text.startswith(text.split(";")[0].strip())
    assert again.content == compiled.content


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto2"; message A { extensions 100 to 199; }',
        'syntax = "proto2"; message A { optional group G = 1 { } }',
        'edition = "2023"; message A { }',
    ],
)
def test_what_is_not_written(text: str) -> None:
    """Such a file is stored as it came."""
    compiled = compile_protobuf(text, {})
    with pytest.raises(NotWritten):
        protobuf_text(FileDescriptorProto.FromString(base64.b64decode(compiled.serialized)))
    assert compile_protobuf(compiled.serialized, {}) == (compiled.serialized, compiled.content)


def test_names_in_json() -> None:
    assert [json_name_of(each) for each in ("order_id", "order__id", "a", "_a", "a_1b")] == [
        "orderId",
        "orderId",
        "a",
        "A",
        "a1b",
    ]
