"""Every command of every page, typed from the wheel; `make typed` prints what differs."""

import os

import pytest

from tests.typed.__main__ import PAGES, type_pages
from tests.typed.page import why_not_alone


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(why_not_alone() is not None, reason="no process can have a network of its own here")
def test_every_page_prints_the_truth() -> None:
    reports = type_pages(PAGES, at_once=min(4, os.cpu_count() or 1))
    assert {report.page: report.wrong for report in reports if report.wrong} == {}
    assert sum(report.commands for report in reports) > 200
    assert sum(report.compared for report in reports) > 100
