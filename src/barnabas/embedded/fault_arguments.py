"""The arguments of faults, checked: names of APIs and errors as Kafka's documentation has them; each mistake is one sentence."""

from __future__ import annotations

from barnabas.api import APIS
from barnabas.embedded.fault_plan import Where
from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.words.nearest import did_you_mean

__all__ = ["api_key", "checked_ahead", "checked_nth", "checked_seconds", "checked_times", "checked_where", "error_code"]

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


def checked_nth(nth: int) -> int:
    if isinstance(nth, bool) or not isinstance(nth, int) or nth < 1:
        raise ValueError(f"nth={nth!r}: pass 1 for the next request, 2 for the one after it")
    return nth


def checked_seconds(seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds={seconds!r}: pass 0 or more")
    return float(seconds)


def checked_ahead(seconds: float) -> float:
    """Return by how much a clock is ahead; at most a hundred years, which every timestamp can hold."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not abs(seconds) <= 100 * 366 * 86400:
        raise ValueError(
            f"seconds={seconds!r}: pass how far the clock is ahead, negative for behind, at most 100 years"
        )
    return float(seconds)


def checked_where(topic: str | None, partition: int | None, client_id: str | None, group: str | None) -> Where:
    """Return the requests that a fault meets."""
    for name, value in (("topic", topic), ("client_id", client_id), ("group", group)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ValueError(f"{name}={value!r}: pass its name as text, or leave it out")
    if partition is not None and (isinstance(partition, bool) or not isinstance(partition, int) or partition < 0):
        raise ValueError(f"partition={partition!r}: pass 0 or more, or leave it out")
    return Where(topic, partition, client_id, group)
