import json

import pytest

from barnabas.cli.output import JsonOutput, Table, TableOutput, json_name, text


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


def test_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    TableOutput().table(("NAME", "LAG"), [("[bold]orders", 12)])
    TableOutput().show([], Table(("GROUP",), [("g",)], vertical=True))
    printed = capsys.readouterr().out
    assert "[bold]orders" in printed
    assert "GROUP" in printed


def test_names_and_cells() -> None:
    assert json_name("LOG-END-OFFSET") == "log_end_offset"
    assert [text(value) for value in (None, "", 0, False, (), "a")] == ["-", "-", "0", "false", "-", "a"]
