"""Every command by itself: its help, what it imports, how it fails where no broker is."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from barnabas.cli.commands import COMMANDS
from barnabas.main import command_group

NOWHERE = "127.0.0.1:1"


def load(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].where.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


def leaves(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if isinstance(command, click.Group):
        return [leaf for name, child in command.commands.items() for leaf in leaves(child, (*path, name))]
    return [path]


ALL = [leaf for name in COMMANDS for leaf in leaves(load(name), (name,))]


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(command_group(), arguments, input=given, prog_name="barnabas")


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "Usage: barnabas " + " ".join(path) in result.output


def test_what_there_is() -> None:
    assert sorted(" ".join(path) for path in ALL) == [
        "acl create", "acl delete", "acl explain", "acl list", "adopt back", "adopt check", "adopt next", "adopt status",
        "broker describe", "broker list", "broker logdirs", "broker move", "broker self-test", "cert dev", "claims audit",
        "claims sweep", "cluster accept-loss", "cluster cancel", "cluster drain",
        "cluster forget", "cluster health", "cluster info", "cluster move", "cluster nodes", "cluster quorum", "cluster rebalance",
        "cluster replace", "cluster resize", "cluster restart", "cluster status", "cluster throttle",
        "cluster upgrade", "cluster voter add", "cluster voter remove",
        "completion", "config alter", "config describe", "console", "consume", "cut create", "cut delete",
        "cut diff", "cut list", "cut show", "deliver", "dlq list", "dlq purge", "dlq redrive", "dlq show",
        "generate", "group delete", "group delete-offsets", "group describe", "group list", "group reset-offsets", "group why",
        "lake audit", "lake compact", "lake vacuum", "log dump", "mirror", "perf consume", "perf latency", "perf produce", "plan",
        "produce",
        "profile add", "profile list", "profile remove", "profile show", "profile use",
        "quota delete", "quota list", "quota set", "registry", "replay",
        "schemas check", "schemas delete", "schemas get", "schemas list", "schemas pull", "schemas put", "spark orphans", "spark status",
        "sql", "support bundle", "token create", "token describe", "token expire", "token renew", "top",
        "topic alter", "topic apply", "topic audit", "topic configs", "topic create", "topic delete", "topic describe",
        "topic export", "topic grow", "topic import", "topic list",
        "topic skew", "topic trim", "topic which-partition", "txn abort", "txn describe", "txn doctor", "txn list",
        "user create", "user delete", "user list", "user password", "verify",
    ]  # fmt: skip


def test_destructive_verbs_have_a_dry_run() -> None:
    for path in ALL:
        if path[-1] in (
            "abort",
            "accept-loss",
            "alter",
            "apply",
            "cancel",
            "delete",
            "delete-offsets",
            "drain",
            "forget",
            "grow",
            "move",
            "create",
            "purge",
            "rebalance",
            "redrive",
            "replay",
            "reset-offsets",
            "restart",
            "set",
            "sweep",
            "trim",
            "upgrade",
        ):
            assert "--dry-run" in run(*path, "--help").output


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "list"),
        ("topic", "create", "t"),
        ("topic", "describe", "t"),
        ("topic", "alter", "t", "-p", "3"),
        ("topic", "delete", "t"),
        ("topic", "which-partition", "t", "k"),
        ("produce", "t"),
        ("consume", "t"),
        ("consume", "t", "-g", "g"),
        ("consume", "t", "--share", "g"),
        ("generate", "t"),
        ("perf", "produce", "t"),
        ("perf", "consume", "t"),
        ("perf", "latency", "t"),
        ("group", "list"),
        ("group", "describe", "g"),
        ("group", "delete", "g"),
        ("group", "reset-offsets", "g", "--all-topics", "--to-latest"),
        ("group", "delete-offsets", "g", "--topic", "t"),
        ("topic", "trim", "t", "--before", "end"),
        ("topic", "skew", "t"),
        ("topic", "export", "t", "absent"),
        ("topic", "audit"),
        ("adopt", "status"),
        ("cluster", "info"),
        ("cluster", "health"),
        ("cluster", "status"),
        ("cluster", "nodes"),
        ("cluster", "quorum"),
        ("cluster", "drain", "1"),
        ("cluster", "forget", "1"),
        ("cluster", "accept-loss"),
        ("cluster", "move", "t:0", "--to", "1"),
        ("cluster", "cancel", "--all"),
        ("cluster", "throttle"),
        ("cluster", "voter", "add", "1", "--at", "localhost:9093"),
        ("cluster", "voter", "remove", "1"),
        ("cluster", "rebalance"),
        ("cluster", "replace", "1"),
        ("cluster", "restart", "--dry-run"),
        ("cluster", "upgrade", "--finalize"),
        ("broker", "list"),
        ("broker", "describe"),
        ("broker", "logdirs"),
        ("spark", "status"),
        ("acl", "list"),
        ("acl", "create", "--allow-principal", "User:u", "--operation", "read", "--topic", "t"),
        ("acl", "delete", "--topic", "t"),
        ("acl", "explain", "--principal", "User:u", "--host", "::1", "--operation", "read", "--topic", "t"),
        ("quota", "list"),
        ("quota", "set", "--user", "u", "producer_byte_rate=1"),
        ("quota", "delete", "--user", "u"),
        ("token", "create"),
        ("token", "describe"),
        ("user", "list"),
        ("user", "create", "alice"),
        ("user", "password", "alice"),
        ("user", "delete", "alice"),
        ("config", "describe", "topic", "t"),
        ("dlq", "list"),
        ("dlq", "show", "t.dlq"),
        ("dlq", "redrive", "t.dlq"),
        ("dlq", "purge", "t.dlq"),
        ("replay", "t", "--from", "start", "--to", "other"),
        ("config", "alter", "topic", "t", "--set", "a=1"),
    ],
    ids=" ".join,
)
def test_without_a_broker_one_line_says_what_to_do(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, "-b", NOWHERE)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"error: cannot reach {NOWHERE}: connection refused"
        " (start a broker with `barnabas start --data-dir DIR`, or name another with -b HOST:PORT)\n"
    )


def test_which_partition_needs_no_broker_when_told_how_many() -> None:
    result = run("topic", "which-partition", "t", "k", "-p", "10", "-b", NOWHERE, "--partitioner", "consistent")
    assert result.output == "KEY  PARTITION  PARTITIONER  CLIENTS\nk    1          consistent   -\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("topic", "create"), "error: missing argument NAME…\n"),
        (("topic", "create", "t", "-c", "novalue"), "'novalue' is not KEY=VALUE"),
        (("topic", "create", "t", "-p", "0"), "0 is less than 1"),
        (("topic", "alter", "t"), "error: nothing to change"),
        (("topic", "alter", "t", "-p", "3", "-n", "1"), "error: use either --partitions"),
        (("topic", "which-partition", "t", "k", "--partitioner", "modulo"), "is not one of murmur2_random"),
        (("consume",), "missing argument TOPIC…"),
        (("consume", "t", "-g", "g", "-p", "0"), "leave out --partitions"),
        (("consume", "t", "-g", "g", "-o", "5"), "continues where it stopped"),
        (("consume", "t", "-p", "x"), "write -p 0,3"),
        (("consume", "t", "-g", ""), "the group name is empty"),
        (("consume", "t", "-o", "5:2"), "ends before it begins"),
        (("produce", "t", "--partitioner", "modulo"), "--partitioner: 'modulo' is not one of murmur2_random"),
        (("group", "list", "--state", "stable,Steady"), "'Steady' is not one of PreparingRebalance"),
        (("group", "list", "--type", "modern"), "'modern' is not one of classic, consumer, share, streams"),
        (("txn", "list", "--state", "Open"), "'Open' is not one of Empty, Ongoing"),
        (("config", "describe", "user", "alice"), "barnabas quota list"),
        (("config", "describe", "topci", "orders"), "did you mean topic?"),
        (("verify", "--plain", "0", "--txn", "0", "--transform", "0"), "nothing to do"),
        (("verify", "--broker-command", "run 'it"), "no closing quotation"),
        (("produce", "t", "-f", "%v\\n", "-K", ":"), "leave out -K and -D"),
        (("produce", "t", "-H", "=x"), "has no name"),
        (("generate", "t", "--rate", "0/s"), "--rate: '0/s' is not a rate"),
        (("generate", "t", "--late", "200%"), "--late: '200%' is not a percentage"),
        (("generate", "t", "--late-by", "soon"), "'soon' is not a valid duration"),
        (("group", "describe"), "missing argument GROUP…"),
        (("group", "reset-offsets", "g", "--to-latest"), "choose --topic"),
        (("group", "reset-offsets", "g", "--to-latest", "--dry-run", "--execute"), "contradict"),
        (("completion", "tcsh"), "'tcsh' is not one of"),
        (("topic", "list", "--output", "xml"), "'xml' is not one of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments, "-b", NOWHERE) if arguments[0] != "completion" else run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"request.timeout.ms=soon\n", "request.timeout.ms=soon"),
        (b"request.timeout.ms=0\n", "request.timeout.ms=0"),
        (b"\xff\xfe\x00", "as a properties file: it is not text"),
    ],
)
def test_a_bad_properties_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(content)
    result = run("topic", "list", "-b", NOWHERE, "--command-config", str(path))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_values_of_a_properties_file_are_trimmed(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers = {NOWHERE} \nrequest.timeout.ms = 50 \nsecurity.protocol = plaintext \n")
    assert "cannot reach" in run("topic", "list", "--command-config", str(path)).stderr


def test_completion_of_topics_is_silent_without_a_broker() -> None:
    from click.shell_completion import BashComplete

    complete = BashComplete(load("topic"), {}, "topic", "_X")
    assert complete.get_completions(["describe", "-b", NOWHERE], "or") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "code", "words"),
    [
        (">/dev/full", 1, "error: No space left on device\n"),
        (">&-", 0, ""),
        ("2>&- <&-", 0, ""),
    ],
)
def test_streams_that_are_full_or_closed(redirected: str, code: int, words: str) -> None:
    command = f"{sys.executable} -m barnabas.main topic which-partition t key -p 3 {redirected}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, words)
