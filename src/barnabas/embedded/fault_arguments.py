"""The arguments of the faults in answers, checked: names of APIs and errors as Kafka's documentation has them."""

from __future__ import annotations

from barnabas.api import APIS
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.words.nearest import did_you_mean

__all__ = ["api_key", "checked_times", "error_code"]

__tracebackhide__ = True  # pytest's reports end at the caller's line


def api_key(name: str | int) -> int:
    """Return the number of an API that brokers serve, named as in Kafka's documentation: `Produce`, `Fetch`, `OffsetCommit`."""
    by_name = {api(key).name: int(key) for key in APIS}
    if isinstance(name, str):
        key = by_name.get(name.removesuffix("Request"))
        if key is None:
            raise ValueError(f"api={name!r}: brokers serve no such API{did_you_mean(name, by_name)}")
        return key
    if name not in APIS:
        raise ValueError(f"api={name!r}: brokers serve no such API; pass its name, such as 'Produce'")
    return int(ApiKey(name))


def error_code(error: str | int) -> int:
    """Return the number of an error, named as in Kafka's documentation: `NOT_LEADER_OR_FOLLOWER`."""
    names = [code.name for code in ErrorCode if code is not ErrorCode.NONE]
    if isinstance(error, str):
        if error not in names:
            raise ValueError(f"error={error!r}: Kafka has no such error{did_you_mean(error, names)}")
        return int(ErrorCode[error])
    if error == ErrorCode.NONE or error not in list(ErrorCode):
        raise ValueError(f"error={error!r}: Kafka has no such error; pass its name, such as 'NOT_LEADER_OR_FOLLOWER'")
    return int(error)


def checked_times(times: int | None) -> int:
    """Return the argument `times`; -1 for None, which means every request."""
    if times is None:
        return -1
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise ValueError(f"times={times!r}: pass 1 or more, or None for every request")
    return times
