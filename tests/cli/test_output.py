import json
import os

import click
import pytest

from barnabas.cli.output import JsonOutput, Table, TableOutput, json_name, note, printable_json, text

LAG = Table(
    ("TOPIC", "PARTITION", "OFFSET", "LAG", "HOST"),
    [("orders", 0, 1_000_000, None, "/127.0.0.1"), ("orders", 1, 7, 12, None)],
    hidden_first=("HOST", "OFFSET"),
)


def shown(
    capsys: pytest.CaptureFixture[str], columns: int, *tables: Table, wide: bool = False
) -> tuple[list[str], str]:
    """Return the lines on a terminal of so many columns, without bold, and the note below them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.isatty", lambda: True)
        patch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
        TableOutput(wide=wide).show([], *tables)
    printed = capsys.readouterr()
    return click.unstyle(printed.out).splitlines(), printed.err.rstrip("\n")


def test_tables_are_aligned_and_end_without_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    TableOutput().table(("NAME", "LAG", "REPLICAS"), [("orders", 12, [1, 2]), ("x", None, [])])
    assert capsys.readouterr().out == "NAME    LAG  REPLICAS\norders  12   1,2\nx       -    -\n"


def test_sections(capsys: pytest.CaptureFixture[str]) -> None:
    vertical = Table(("GROUP", "TOTAL-LAG"), [("g", 0)], vertical=True, title="summary")
    TableOutput().show([], vertical, Table(("A",), [(True,)]))
    assert capsys.readouterr().out == "summary\nGROUP      g\nTOTAL-LAG  0\n\nA\ntrue\n"


def test_json_keeps_types(capsys: pytest.CaptureFixture[str]) -> None:
    JsonOutput().table(("NAME", "LOG-END-OFFSET", "ISR"), [("ö", None, [1])])
    assert json.loads(capsys.readouterr().out) == [{"name": "ö", "log_end_offset": None, "isr": [1]}]


def test_json_escapes_what_a_terminal_obeys_and_keeps_letters() -> None:
    hostile = {"ö": "\x1b[2J\x7f\x9b31m\u202e\n€"}
    assert printable_json(json.dumps(hostile, ensure_ascii=False)) == '{"ö": "\\u001b[2J\\u007f\\u009b31m\\u202e\\n€"}'
    assert json.loads(printable_json(json.dumps([hostile], indent=2, ensure_ascii=False))) == [hostile]
    assert printable_json('"\U000e0001"') == r'"\udb40\udc01"'


def test_nothing_from_outside_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "g\x1b]0;owned\x07\n2026 INFO forged\u202e"
    TableOutput().show([], Table(("GROUP", "HOSTS"), [(hostile, [hostile])], title=hostile))
    escaped = r"g\x1b]0;owned\x07\n2026 INFO forged\u202e"
    assert capsys.readouterr().out.splitlines() == [
        escaped,
        f"GROUP{' ' * (len(escaped) - 3)}HOSTS",
        f"{escaped}  {escaped}",
    ]


def test_numbers_stand_to_the_right_also_beside_absent_ones(capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = shown(capsys, 80, LAG)
    assert lines == [
        "TOPIC   PARTITION   OFFSET  LAG  HOST",
        "orders          0  1000000    -  /127.0.0.1",
        "orders          1        7   12  -",
    ]  # fmt: skip
    assert said == ""


def test_columns_leave_in_the_declared_order(capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = shown(capsys, 31, LAG)
    assert lines[0] == "TOPIC   PARTITION   OFFSET  LAG"
    assert said == "1 column hidden: HOST; --wide\n  shows it"
    lines, said = shown(capsys, 30, LAG)
    assert lines == ["TOPIC   PARTITION  LAG", "orders          0    -", "orders          1   12"]
    assert said == "2 columns hidden: OFFSET,\n  HOST; --wide shows them"


def test_a_column_without_a_value_leaves_first(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("A", "OFFSET", "HOST"), [("a", 1, None), ("b", 2, None)], hidden_first=("OFFSET", "HOST"))
    lines, said = shown(capsys, 12, table)
    assert lines == ["A  OFFSET", "a       1", "b       2"]
    assert said.startswith("1 column")
    assert "HOST" in said


def test_a_column_that_still_fits_stays_though_a_wider_one_left(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("A", "MEMBER-ID", "B"), [("a", "m" * 40, 1)], hidden_first=("B", "MEMBER-ID"))
    assert shown(capsys, 20, table)[0] == ["A  B", "a  1"]


def test_shorter_words_come_before_a_column_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(
        ("KEY", "SOURCE"), [("k", "DYNAMIC_TOPIC"), ("j", "x")], hidden_first=("SOURCE",),
        shorter={"SOURCE": {"DYNAMIC_TOPIC": "topic"}},
    )  # fmt: skip
    assert shown(capsys, 18, table) == (["KEY  SOURCE", "k    DYNAMIC_TOPIC", "j    x"], "")
    assert shown(capsys, 17, table) == (["KEY  SOURCE", "k    topic", "j    x"], "")
    assert shown(capsys, 10, table)[0] == ["KEY", "k", "j"]


def test_wide_shows_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, 20, LAG, wide=True) == (
        [
            "TOPIC   PARTITION   OFFSET  LAG  HOST",
            "orders          0  1000000    -  /127.0.0.1",
            "orders          1        7   12  -",
        ],
        "",
    )


def test_sentences_and_lists_move_below_their_row_and_break_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("EPOCH", "CAUSE", "MOVED"), [(2, "member a joined", ["t-0", "t-1"])], below=("CAUSE", "MOVED"))
    assert shown(capsys, 31, table)[0] == ["EPOCH  CAUSE            MOVED", "    2  member a joined  t-0,t-1"]
    assert shown(capsys, 12, table) == (["EPOCH", "    2", "  member a", "  joined", "  t-0, t-1"], "")
    assert shown(capsys, 12, table._replace(rows=[(2, "member a joined", None)]))[0][-1] == "  joined"


def test_the_last_resort_is_to_cut_the_widest_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("NAME", "STATE", "LAG"), [("n" * 30, "Stable", 10**12)])
    lines, said = shown(capsys, 40, table)
    assert lines == [f"NAME{' ' * 15}STATE{' ' * 13}LAG", f"{'n' * 16}…  Stable  1000000000000"]
    assert said == "long values are cut; --wide shows them"


def test_wide_letters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("NAME", "A"), [("日本語e\u0301", "x"), ("a" * 7, "y")])
    assert shown(capsys, 80, table)[0] == ["NAME     A", "日本語e\u0301  x", "aaaaaaa  y"]
    assert shown(capsys, 9, table)[0] == ["NAME    A", "日本…   x", "aaaaa…  y"]


def test_a_vertical_table_continues_long_lists_below(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("ID", "PARTITIONS"), [("x", ["t-0", "t-1", "t-2"])], vertical=True)
    assert shown(capsys, 23, table)[0] == ["ID          x", "PARTITIONS  t-0,t-1,t-2"]
    assert shown(capsys, 22, table)[0] == ["ID          x", "PARTITIONS  t-0, t-1,", "            t-2"]


def test_the_note_names_every_column_that_is_hidden() -> None:
    assert note(["LAG", "HOST"], False, 60) == "2 columns hidden: LAG, HOST; --wide shows them"
    assert note(["LAG"], False, 60) == "1 column hidden: LAG; --wide shows it"
    names = ["LOG-START-OFFSET", "HOST", "CLIENT-ID"]
    assert note(names, False, 70) == "3 columns hidden: LOG-START-OFFSET, HOST, CLIENT-ID; --wide shows them"
    assert note(names, False, 40).splitlines() == [
        "3 columns hidden: LOG-START-OFFSET,",
        "  HOST, CLIENT-ID; --wide shows them",
    ]
    assert note(names, True, 60).splitlines() == [
        "3 columns hidden: LOG-START-OFFSET, HOST, CLIENT-ID; long",
        "  values cut; --wide shows all",
    ]


def test_names_and_cells() -> None:
    assert json_name("LOG-END-OFFSET") == "log_end_offset"
    assert [text(value) for value in (None, "", 0, False, (), "a")] == ["-", "-", "0", "false", "-", "a"]
