"""The demo ends when the pipeline cannot go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.shop_process import ShopProcess, ShopStopped


def watched(folder: Path, restarts: int) -> None:
    query = {"name": "alerts", "restarts": restarts, "error": "no such folder"}
    (folder / "status.json").write_text(json.dumps({"alarms": [], "queries": [query]}))


def test_a_query_that_fails_again_and_again_ends_the_demo(tmp_path: Path) -> None:
    shop = ShopProcess(tmp_path, ShopBroker("localhost:1"))
    shop.check()
    watched(tmp_path, 2)
    shop.check()
    watched(tmp_path, 30)
    with pytest.raises(ShopStopped, match="the pipeline cannot go on: alerts failed 30 times: no such folder"):
        shop.check()
