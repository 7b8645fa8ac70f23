"""The completion script of each shell."""

import pytest
from click.testing import CliRunner

from barnabas.cli.completion import completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    printed = CliRunner().invoke(completion, [shell], prog_name="barnabas completion").output
    assert "_BARNABAS_COMPLETE" in printed
    assert f"{shell}_complete" in printed
