"""What people see of every table at 60, 80 and 120 columns; `make screens` compares the same in tmux."""

import shutil

import pytest

from barnabas.cli.layout import width_of
from tests.cli.screens import FOLDER, SCREENS, WIDTHS, Tmux, path_of, shown_here, tables_of, text_of


@pytest.mark.parametrize("name", SCREENS)
def test_the_screens(name: str) -> None:
    """Run `python -m tests.cli.screens --write` after a wanted change."""
    assert path_of(name).read_text() == text_of(name, {width: shown_here(name, width) for width in WIDTHS})


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_folds(width: int) -> None:
    # `verify` prints sentences below its tables.
    narrow = [name for name, command in SCREENS.items() if "--wide" not in command and "verify" not in command]
    assert [line for name in narrow for line in tables_of(name, width) if width_of(line) > width] == []


def test_every_file_has_its_command() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.txt" for name in SCREENS)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_real_terminal_shows_the_same() -> None:
    with Tmux() as tmux:
        assert text_of("txn-doctor", tmux.screens("txn-doctor")) == path_of("txn-doctor").read_text()
