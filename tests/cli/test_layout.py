"""The lines of a table for a terminal of some width."""

import pytest

from barnabas.cli.layout import Grid, cut, lay_out, lay_out_vertically, width_of, wrapped

GRID = Grid(
    ["GROUP", "LAG", "HOST", "CAUSE"],
    [["orders", "12", "/10.0.0.1", "member a joined"], ["x", "-", "-", "-"]],
    frozenset({1}),
    below=[3],
    hidden_first=[2],
)


@pytest.mark.parametrize("width", [None, 39])
def test_everything_that_fits_is_on_the_row(width: int | None) -> None:
    assert lay_out(GRID, width) == (
        "GROUP   LAG  HOST       CAUSE",
        ["orders   12  /10.0.0.1  member a joined", "x         -  -          -"],
        [],
        False,
    )


def test_first_the_sentences_leave_the_row_then_columns() -> None:
    sentence = "  member a joined"
    assert lay_out(GRID, 38)[:3] == (
        "GROUP   LAG  HOST",
        ["orders   12  /10.0.0.1", sentence, "x         -  -"],
        [],
    )
    assert lay_out(GRID, 21)[:3] == ("GROUP   LAG", ["orders   12", sentence, "x         -"], ["HOST"])


def test_numbers_are_never_cut() -> None:
    grid = Grid(["NAME", "OFFSET"], [["n" * 20, "1234567890"]], frozenset({1}))
    assert lay_out(grid, 20).lines == ["nnnnnnn…  1234567890"]
    assert lay_out(grid, 10).lines == ["nnnnn…  1234567890"]
    assert lay_out(grid, 10).is_cut


def test_the_name_of_a_row_is_cut_after_everything_else() -> None:
    grid = Grid(["NAME", "STATE"], [["n" * 20, "PreparingRebalance"]])
    assert lay_out(grid, 30).lines == [f"{'n' * 20}  Prepari…"]
    assert lay_out(grid, 26).lines == [f"{'n' * 17}…  Prepa…"]


def test_a_vertical_table_keeps_its_values_beside_their_names() -> None:
    layout = lay_out_vertically(["NAME", "LIST"], ["one two", ["aa", "bb", "cc"]], 12)
    assert layout.lines == ["NAME  one", "      two", "LIST  aa,", "      bb, cc"]
    assert not layout.is_cut


def test_texts_break_between_words_and_a_longer_word_is_cut() -> None:
    assert wrapped("one three five", 9) == (["one three", "five"], False)
    assert wrapped("one extraordinary", 9) == (["one", "extraord…"], True)
    assert wrapped(["t-0", "t-1", "t-2"], 9) == (["t-0, t-1,", "t-2"], False)


def test_width_is_counted_in_columns_of_the_terminal() -> None:
    assert [width_of(text) for text in ("abc", "日本", "e\u0301", "o\u20dd", "ö")] == [3, 4, 1, 1, 1]
    assert cut("日本語", 6) == "日本語"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"


def test_a_word_that_is_cut_below_its_row_counts_as_cut() -> None:
    grid = Grid(["A", "ID"], [["a", "i" * 30]], below=[1])
    layout = lay_out(grid, 12)
    assert layout.lines == ["a", "  iiiiiiiii…"]
    assert layout.is_cut
