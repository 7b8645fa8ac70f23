"""The command that restarts a node: its placeholders, and how it fails."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.node_command import NodeCommand, run_command, words_for


def template(text: str) -> list[str]:
    return list(NodeCommand().convert(text, None, None))


def test_a_placeholder_stays_a_part_of_its_word() -> None:
    words = template("ssh root@{host} 'systemctl restart barnabas@{node}' {}")
    assert words_for(words, 2, "two.example") == ["ssh", "root@two.example", "systemctl restart barnabas@2", "{}"]
    assert words_for(template("restart {node}"), 2, None) == ["restart", "2"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("systemctl restart barnabas", "it must name the node"),
        ("restart {id}", "{id} stands for nothing"),
        ("restart '{node}", "is not a command: no closing quotation"),
    ],
)
def test_what_is_not_a_command(text: str, error: str) -> None:
    with pytest.raises(click.BadParameter, match=error):
        template(text)


@pytest.mark.parametrize("host", ["-oProxyCommand=reboot", "a;reboot", "a b", ""])
def test_a_host_that_would_be_an_option_or_a_command_is_an_error(host: str) -> None:
    with pytest.raises(Failure, match="the host of node 2 is not a host's name"):
        words_for(template("ssh {host} restart"), 2, host)


def test_hosts_are_names_and_addresses() -> None:
    for host in ("10.0.0.7", "kafka-2.example", "fe80::1%eth0", "[::1]"):
        assert words_for(template("ssh {host}"), 2, host) == ["ssh", host]
    with pytest.raises(Failure, match="the cluster does not name the host of node 2"):
        words_for(template("ssh {host}"), 2, None)


def test_how_a_command_fails() -> None:
    run_command(["true"], 2, 10)
    with pytest.raises(Failure, match="the command for node 2 ended with exit code 3: sh -c 'exit 3'"):
        run_command(["sh", "-c", "exit 3"], 2, 10)
    with pytest.raises(
        Failure, match="the command for node 2 cannot be run: no such file or directory: absent-program 2"
    ):
        run_command(["absent-program", "2"], 2, 10)
    with pytest.raises(Failure, match=r"the command for node 2 did not end within 0\.01 s"):
        run_command(["tail", "-f", "/dev/null"], 2, 0.01)
