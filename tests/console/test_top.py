"""`barnabas top`: what it refuses, and its looks at a broker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from textual.widgets import DataTable

import barnabas
from barnabas.cli.output import OUTPUTS
from barnabas.cli.session import Session
from barnabas.console.top import Looking
from barnabas.console.top_screen import TopScreen
from barnabas.main import command_group
from barnabas.words.requirements import install_command
from tests.console.test_top_screen import names, state, until
from tests.hidden_packages import hide


def test_without_a_terminal_it_names_the_command_that_needs_none() -> None:
    done = CliRunner().invoke(command_group(), ["top"], prog_name="barnabas")
    assert done.exit_code == 1
    assert done.stderr == (
        "error: barnabas top needs a terminal (barnabas cluster status prints the cluster's health once)\n"
    )


@pytest.mark.slow
def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    hide(tmp_path, "textual")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "500"}
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "top"],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: barnabas top needs textual ({install_command('top')})\n"


@pytest.mark.slow
def test_a_broker_is_shown_and_its_end_is_a_sentence() -> None:
    async def watch() -> None:
        with barnabas.Broker() as broker:
            broker.create_topic("orders", partitions=2)
            looking = Looking(Session(broker.bootstrap_servers, {}, 2_000, OUTPUTS["json"]()))
            screen = TopScreen("here", looking, 0.05)
            async with screen.run_test() as pilot:
                await until(pilot, lambda: "orders" in names(screen))
                assert "HEALTHY true" in state(screen)
                await pilot.press("tab", "tab")
                assert screen.query_one(DataTable).row_count == 1
                await asyncio.to_thread(broker.stop)
                await until(pilot, lambda: "here: Cannot reach" in state(screen))
                assert screen.is_running
            looking.close()

    asyncio.run(watch())
