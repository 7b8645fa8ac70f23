"""How outputs are compared: to the byte, but for what has a name."""

import pytest

from tests.typed.outputs import comparable, difference


def test_equal_outputs_have_no_difference() -> None:
    assert difference("A  B\n1  2\n", "A  B\n1  2\n\n") == ""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("A  B\n", "A B\n"), ("1\n", "2\n"), ("a\nb\n", "b\na\n"), ("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("", "a\n")],
)
def test_a_blank_a_number_an_order_and_a_line_count(shown: str, printed: str) -> None:
    assert difference(shown, printed) != ""


def test_what_no_two_runs_print_alike_has_a_name() -> None:
    line = "at 2026-11-27T07:08:59.835Z  4L6g3nShT-eMCtK--X86sw 127.0.0.1:41723 /tmp/barnabas-cluster-x1/n 127.0.0.1:9092\n"
    assert comparable(line) == ["at <time> <id> 127.0.0.1:<port> <folder>/n 127.0.0.1:9092"]
    assert comparable("orders-0d972c30ecb5-to-orders-copy  9\n") == ["orders-<id>-to-orders-copy 9"]
    assert comparable("kafka-consumer-groups1  under-replicated-topics\n") == [
        "kafka-consumer-groups1  under-replicated-topics"
    ]


def test_a_name_moves_the_columns_of_its_table() -> None:
    shown = "NAME  CREATED                   N\na     2026-11-27T07:08:59.835Z  1\n"
    assert difference(shown, "NAME  CREATED               N\na     2026-11-27T07:08:59Z  1\n") == ""
    assert difference(shown, "NAME  CREATED               N\na     2026-11-27T07:08:59Z  2\n") != ""


def test_a_page_says_what_else_differs() -> None:
    assert difference("open for 58s\n", "open for 1m2s\n", ("other durations",)) == ""
    assert difference("open for 58s, 3\n", "open for 1m2s, 4\n", ("other durations",)) != ""
    assert difference("MB/SEC  13.47\n", "MB/SEC  9.5\n", ("other measures",)) == ""
    assert difference("6  75 B/s\n", "7  8 B/s\n", ("other measures",)) != ""
    assert difference("ISR 3,1,2 of 4\n", "ISR 1,2,3 of 5\n", ("other numbers",)) == ""
    assert difference("ISR 1,2\n", "ISR 1,3\n", ("other numbers",)) != ""
    assert difference("a\nb\n", "b\na\n", ("in any order",)) == ""


def test_some_lines_are_those_of_the_page_in_its_order() -> None:
    printed = "A  B  C\n1  2  3\n4  5  6\n"
    assert difference("A  B\n4  5\n", printed, ("some lines",)) == ""
    assert difference("4  5\nA  B\n", printed, ("some lines",)) != ""
    assert difference("A  B\n4  6\n", printed, ("some lines",)) != ""


def test_what_the_shell_and_librdkafka_say_is_not_the_commands() -> None:
    printed = (
        "bash: line 9:   130 Killed                  python a.py\n%4|1795894709.176|GETPID|rdkafka#producer-1| x\nb\n"
    )
    assert difference("b\n", printed) == ""


def test_a_page_may_not_say_what_nobody_knows() -> None:
    with pytest.raises(ValueError, match="other colours"):
        comparable("a\n", ("other colours",))
