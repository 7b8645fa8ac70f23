"""A wrong command line: usage, where help is, what is wrong, and the nearest name."""

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.main import command_group, main

NOWHERE = "127.0.0.1:1"


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(command_group(), arguments, env=environment, prog_name="barnabas")


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("group describe NAME", "GROUP"),
        ("topic describe t NAME", "NAME"),
        ("config describe topic NAME", "TYPE NAME"),
        ("produce NAME", "TOPIC"),
        ("produce t -k NAME", "--key"),
        ("consume t -g NAME", "--group"),
        ("topic which-partition t NAME", "KEY"),
        ("topic list -b NAME", "--bootstrap-server"),
        ("demo -b NAME", "--bootstrap-server"),
    ],
)
def test_a_name_that_is_not_utf8(line: str, where: str) -> None:
    """Python has the byte 0xff of a command line as U+DCFF. confluent-kafka ended the process for a group of this name."""
    result = run(*(word.replace("NAME", "n\udcff") for word in line.split()))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == rf"error: {where}: 'n\xff' is not valid UTF-8"


def test_an_address_in_the_environment_that_is_not_utf8() -> None:
    result = run("topic", "list", BARNABAS_BOOTSTRAP_SERVERS="h\udcff:1")
    assert result.stderr.splitlines()[-1] == r"error: BARNABAS_BOOTSTRAP_SERVERS: 'h\xff:1' is not valid UTF-8"


def test_a_path_need_not_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "c\udcff"
    path.write_text("bootstrap.servers=")
    result = run("topic", "list", "--command-config", str(path))
    assert "bootstrap.servers in the --command-config file is empty" in result.stderr


def test_the_form() -> None:
    result = run("topic", "list", "--wid")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "Usage: barnabas topic list [OPTIONS] [REGEX]…\n"
        "Try 'barnabas topic list --help' for help.\n"
        "error: no such option: --wid; did you mean --wide?\n"
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("topics", "no such command: topics; did you mean topic?"),
        ("tpoic list", "no such command: tpoic; did you mean topic?"),
        ("strat", "no such command: strat; did you mean start?"),
        ("xyzzy", "no such command: xyzzy"),
        ("topic lst", "no such command: lst; did you mean list?"),
        ("group resetoffsets", "no such command: resetoffsets; did you mean reset-offsets?"),
        ("topic list --bootstrap-sever x", "no such option: --bootstrap-sever; did you mean --bootstrap-server?"),
        (
            "--bootstrap-server h:1 topic list",
            "--bootstrap-server is an option of each command: write it after the command",
        ),
        ("topic -b h:1 list", "-b is an option of each command: write it after the command"),
        ("config alter topic --set a=1", "name what to change: `barnabas config alter topic NAME --set KEY=VALUE`"),
        (
            "config alter broker --set a=1",
            "name the broker: `barnabas config alter broker 1 --set KEY=VALUE`; --entity-default instead of a name sets the"
            " default of all brokers",
        ),
        ("topic create", "missing argument NAME…"),
        ("consume t -g g -p 0", "a group's coordinator chooses the partitions: leave out --partitions"),
        ("txn abort", "missing argument TRANSACTIONAL-ID… (or --topic TOPIC:PARTITION with --start-offset)"),
        ("topic list -b", "-b needs a value: HOST:PORT,…"),
        ("topic list --output", "--output needs a value: [table|json]"),
        ("topic list --timeout-ms", "--timeout-ms needs a value: N"),
        ("topic list --wide=3", "--wide takes no value"),
        ("topic list --timeout-ms soon", "--timeout-ms: 'soon' is not a whole number"),
        ("topic list --timeout-ms 0", "--timeout-ms: 0 is less than 1"),
        ("verify --time soon", "--time: 'soon' is not a number"),
        ("topic list -o jsno", "--output: 'jsno' is not one of table, json; did you mean json?"),
        ("broker describe first", "ID: 'first' is not a whole number"),
        ("completion bash zsh", "unexpected argument: zsh"),
        ("topic list --command-config no-file", "--command-config: cannot read no-file: no such file or directory"),
        ("topic list --command-config /", "--command-config: cannot read /: it is a directory"),
        ("group reset-offsets g --from-file no-file", "--from-file: cannot read no-file: no such file or directory"),
        ("verify --check no-file", "--check: cannot read no-file: no such file or directory"),
        (
            "topic list -b localhost:99999",
            "--bootstrap-server: 'localhost:99999' is not a valid broker address: a port is a number from 1 to 65535",
        ),
        (
            "topic list -b a:b:c",
            "--bootstrap-server: 'a:b:c' is not a valid broker address: write host:port, for example [::1]:9092",
        ),
        (
            "topic list \x1b[2J --output x\x1b",
            "--output: 'x\\x1b' is not one of table, json",
        ),
    ],
)
def test_what_is_wrong_and_what_was_meant(line: str, error: str) -> None:
    result = run(*line.split())
    assert result.exit_code == 2
    usage, try_help, last = result.stderr.splitlines()
    assert usage.startswith("Usage: barnabas")
    assert try_help.endswith("--help' for help.")
    assert last == f"error: {error}"


def test_other_errors_of_the_library_have_the_same_prefix() -> None:
    result = run("topic", "list", "--command-config", "/nonexistent")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: --command-config: cannot read /nonexistent: no such")


def test_a_group_alone_prints_its_help() -> None:
    result = run("topic")
    assert result.exit_code == 2
    assert "Usage: barnabas topic" in result.output
    assert "error" not in result.output


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("help", "Usage: barnabas [OPTIONS] COMMAND"),
        ("help topic", "Usage: barnabas topic [OPTIONS] COMMAND"),
        ("help topic create", "Usage: barnabas topic create [OPTIONS]"),
        ("help start", "barnabas start"),
    ],
)
def test_help_is_a_command(line: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 0
    assert usage in capsys.readouterr().out


def test_help_of_what_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "topics"])
    assert ended.value.code == 2
    assert "error: no such command: topics; did you mean topic?" in capsys.readouterr().err


def test_interruption_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("barnabas.cli.session.Session.admin", interrupt)
    result = run("topic", "list", "-b", NOWHERE)
    assert (result.exit_code, result.stderr.strip()) == (130, "")


@pytest.mark.parametrize("address", ["", " ", ","])
def test_an_empty_address_is_never_localhost(address: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={address}\n")
    for result, source in (
        (run("topic", "list", "-b", address), "--bootstrap-server"),
        (run("topic", "list", BARNABAS_BOOTSTRAP_SERVERS=address), "BARNABAS_BOOTSTRAP_SERVERS"),
        (run("topic", "list", "--command-config", str(file)), "bootstrap.servers in the --command-config file"),
        (run("consume", "t", "-b", address), "--bootstrap-server"),
    ):
        assert result.exit_code == 2
        expected = f"error: {source} is empty: write HOST:PORT, or leave it out for localhost:9092"
        assert result.stderr.splitlines()[-1] == expected


@pytest.mark.parametrize("line", ["topic list", "group list", "txn list", "produce t", "consume t"])
def test_an_unknown_name_in_a_properties_file_is_a_warning_in_every_command(line: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("key.deserializer=a.B\nlinger.ms=5\nschema.registry.url=x\nreqest.timeout.ms=1\nbogus.thing=1\n")
    result = run(*line.split(), "-b", NOWHERE, "--command-config", str(file))
    assert result.exit_code == 1
    first, second, third = result.stderr.splitlines()
    assert first == (f"warning: {file}: unknown setting reqest.timeout.ms is ignored; did you mean request.timeout.ms?")
    assert second == f"warning: {file}: unknown setting bogus.thing is ignored"
    assert third.startswith("error: cannot reach 127.0.0.1:1")


def test_json_is_o_everywhere_but_in_consume() -> None:
    for line in ("topic list", "group list", "txn list", "config describe", "verify", "produce"):
        assert "-o, --output [table|json]" in run(*line.split(), "--help").stdout
    consume = run("consume", "--help").stdout
    assert "-o, --offset OFFSET" in consume
    assert "\n  --output [table|json]" in consume


NASTY = "x\x1b[2J\x07\u202ey\nerror: forged"


@pytest.mark.parametrize(
    "line",
    [
        "{}", "topic {}", "topic list {}", "topic list --{}", "topic list -o {}", "topic list --timeout-ms {}", "topic list -b {}:x",
        "topic list --command-config {}", "topic create t -p {}", "topic create t -c {}", "topic describe {}",
        "verify --check {}", "consume t -o {}", "consume t -p {}", "consume t -f %{}", "produce t -H {}", "config describe {}",
        "quota set --user u {}", "cluster drain {}", "group reset-offsets g --topic {} --to-offset {}", "dlq show t --filter {}",
        "cut create {} --topic {}", "txn abort --topic {} --start-offset {}", "lake audit t {}",
        "start {}", "start --{}", "start --log-level {}", "start --set {}", "start --data-dir /dev/null/{}", "start --nodes {}",
        "start --listen {}", "start --port {}", "storage {}", "storage format {}", "storage format --{}", "storage info -c {}",
        "storage format --data-dir /dev/null/{}", "storage format -t {} --data-dir /dev/null/d", "storage format -r {} --data-dir d",
    ],
)  # fmt: skip
def test_an_error_does_not_drive_the_terminal(line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whatever is echoed of a command line is escaped, by click and by argparse."""
    words = [word.replace("{}", NASTY) for word in line.split()]
    if words[0] in ("start", "storage"):
        with pytest.raises(SystemExit) as end, contextlib.chdir(tmp_path):
            main(words)
        code, shown = end.value.code, capsys.readouterr().err
    else:
        bootstrap = [] if "-b" in words or len(words) < 3 else ["-b", NOWHERE]
        result = run(*words, *bootstrap)
        code, shown = result.exit_code, result.stderr
    assert code in (1, 2)
    assert "error: " in shown
    assert [line for line in shown.splitlines() if not line.isprintable() or line.startswith("error: forged")] == []
