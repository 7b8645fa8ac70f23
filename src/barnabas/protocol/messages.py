"""One class for every message of Kafka's protocol, made when it is first asked for.

    from barnabas.protocol.messages import ProduceRequest, ProduceResponse

    request = ProduceRequest.decode(body, 9)
    response = ProduceResponse(responses=[…])
    response.encode(9)

The names are Kafka's: requests, responses, `RequestHeader`, the metadata records, the keys and values of the coordinators' logs,
and the data inside other fields (`ConsumerProtocolSubscription`). `messages.pyi`, written by `tools/write_stubs.py`, tells
type checkers and editors the fields; `message` has the methods of every message.

Source: Kafka's message definitions, see `schema`.
"""

from __future__ import annotations

from functools import cache

from barnabas.protocol.message import Message, make_message_class
from barnabas.protocol.schema import message_names, schema_index


def __getattr__(name: str) -> type[Message]:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        made = make_message_class(name)
    except KeyError:
        raise AttributeError(f"Kafka has no message named {name!r}") from None
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *message_names()})


def message_class(name: str) -> type[Message]:
    """Return the class of a message by name.

    Raises:
        KeyError: when Kafka has no such message.
    """
    made = globals().get(name)
    if made is None:
        made = globals()[name] = make_message_class(name)
    if not (isinstance(made, type) and issubclass(made, Message)):
        raise KeyError(name)
    return made


@cache
def metadata_record_class(type_id: int) -> type[Message]:
    """Return the class of a record in `__cluster_metadata` by its type.

    Raises:
        KeyError: when there is no such type.
    """
    return message_class(schema_index()["metadata"][str(type_id)])


def coordinator_key_class(family: str, type_id: int) -> type[Message]:
    """Return the class of a key in a coordinator's log.

    Args:
        family: `group` (`__consumer_offsets`), `transaction` (`__transaction_state`) or `share` (`__share_group_state`).
        type_id: the record's type, the int16 in front of the key.

    Raises:
        KeyError: when there is no such type.
    """
    return coordinator_class(family, type_id, 0)


def coordinator_value_class(family: str, type_id: int) -> type[Message]:
    """Return the class of a value in a coordinator's log. Arguments and errors as for `coordinator_key_class`."""
    return coordinator_class(family, type_id, 1)


@cache
def coordinator_class(family: str, type_id: int, side: int) -> type[Message]:
    return message_class(schema_index()["coordinators"][family][str(type_id)][side])
