"""The meaning of the bytes of keys and values: for people as text, for filters as data.

| module | holds |
|---|---|
| `decoder` | the formats by name, the guess for a topic, one part of a record decoded |
| `decoded` | the result |
| `texts` | text, hex and base64, of at most so many bytes |
| `json_values` `msgpack_values` | formats that describe themselves |
| `framed_values` | Avro, Protobuf and JSON behind the id of a schema |
| `protobuf_fields` | Protobuf without a schema: fields by number |
| `avro_bounds` | whether a schema lets a small value become a large one |
| `internal_topics` | the records of `__consumer_offsets`, `__transaction_state` and `__share_group_state` |
| `plain_data` | what decoders return, as JSON has it |
| `expression` | filters in CEL over a decoded record |
| `record_variables` | what such a filter may ask about a record |
| `masks` | fields that are hidden from everybody |

Bytes come from outside. A value that is too large or not of its format is shown as text or hex, with a sentence why. No value ends a
search, holds the interpreter for long, or takes much more memory than it has bytes.
"""
