"""Which partition a key belongs to: Java's hash, by its magnitude."""

from __future__ import annotations

import pytest

from barnabas.protocol.partition_for import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),  # Java's Math.abs would leave this one negative.
        ("Grüße", 69215351),
        ("\U0001f600", 1772899),
        ("console-consumer-12345", 158455506),
    ],
)
def test_java_string_hash(text: str, value: int) -> None:
    assert java_string_hash(text) == value


def test_partition_for() -> None:
    assert partition_for("polygenelubricants", 50) == 0  # The smallest hash, which has no positive twin.
    # Seen in the logs of Apache Kafka 4.3.1: a negative hash counts by its magnitude.
    assert java_string_hash("gda3985") == -122328825
    assert partition_for("gda3985", 50) == 25
    assert all(0 <= partition_for(f"group-{index}", 50) < 50 for index in range(1000))
