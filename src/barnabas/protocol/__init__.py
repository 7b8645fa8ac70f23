"""The protocol room: bytes to messages and back, with no input or output of its own.

- `primitives`: the types Kafka's messages are made of, and the slow ends of their encodings.
- `schema`: Kafka's message definitions, read from `schema.json` one message at a time.
- `codec`, `reader_source`, `writer_source`: Python source compiled for each message and version.
- `message`, `messages`: one class for each message; `versioned`: payloads that carry their own version.
- `api_keys`, `errors`: Kafka's tables of APIs and of error codes.
- `framing`: a stream of bytes cut into requests.

This room imports no other room.
"""
