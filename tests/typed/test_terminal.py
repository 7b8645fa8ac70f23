"""The terminal in which a page's commands are typed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.typed.terminal import Failed, Terminal, ports_of, stays


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "home").mkdir()
    (tmp_path / "logs").mkdir()
    terminal = Terminal(tmp_path / "home", tmp_path / "logs", {"PATH": "/usr/bin:/bin"}, timeout_s=60)
    yield terminal
    terminal.close()


def test_folder_and_variables_stay_and_both_outputs_are_read_in_order(terminal: Terminal, tmp_path: Path) -> None:
    assert terminal.type("mkdir shop && cd shop") == ""
    terminal.type("export TEA='a pot'")
    assert terminal.type("echo 1; echo 2 >&2; printf '%s' \"$TEA\"; # a comment") == "1\n2\na pot"
    assert terminal.type("pwd -P") == f"{(tmp_path / 'home' / 'shop').resolve()}\n"


def test_a_command_that_fails_or_reads_the_terminal_is_noticed(terminal: Terminal) -> None:
    with pytest.raises(Failed, match="exit code 3\nno"):
        terminal.type("echo no; (exit 3)")
    assert terminal.type("cat") == ""
    with pytest.raises(Failed, match="the shell ended"):
        terminal.type("exit 0")


def test_a_command_that_does_not_end_is_noticed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, tmp_path, {"PATH": "/usr/bin:/bin"}, timeout_s=0.05)
    with pytest.raises(Failed, match=r"did not end within 0\.05 s\nfirst"):
        terminal.type("echo first; cat <(sleep 5)")
    terminal.close()


def test_which_programs_stay_and_where_they_listen() -> None:
    assert stays("barnabas start --data-dir data")
    assert stays("barnabas console -b localhost:9092")
    assert not stays("barnabas console --password-file users --add-user alice")
    assert not stays("barnabas topic list")
    assert ports_of("barnabas start --data-dir data --listen 127.0.0.1:9092 --metrics-listen 127.0.0.1:9308") == {
        9092,
        9308,
    }
    assert ports_of("barnabas start --nodes 3 --faults 127.0.0.1:9900") == {9092, 9093, 9094, 9900}
    assert ports_of("barnabas start --data-dir data --metrics-listen 127.0.0.1:9308") == {9092, 9308}
    assert ports_of("barnabas console -b localhost:9092") == {8080}
