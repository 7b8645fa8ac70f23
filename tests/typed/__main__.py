"""`make typed`: type the commands of the README and of the pages of docs/ from the wheel, and compare what they print.

Without arguments all pages; or name some, as docs/tour.md. Prints a line for each page, then what differs, then the counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.typed.environments import ROOT, Environments
from tests.typed.not_typed import NOT_TYPED
from tests.typed.page import Report, blocks_of, is_typed, type_page, why_not_alone

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def type_pages(pages: list[str], at_once: int = 2) -> list[Report]:
    """Type the commands of some pages; print a line for each.

    Raises:
        RuntimeError: there is no uv, or it does not build or install something.
    """
    with tempfile.TemporaryDirectory(prefix="barnabas-typed-") as name, ThreadPoolExecutor(at_once) as pool:
        folder = Path(name)
        environments = Environments(folder)

        def report_of(page: str) -> Report:
            begun = time.monotonic()
            if any(is_typed(block) for block in blocks_of(page)):
                environment = environments.of_page((ROOT / page).read_text())
                report = type_page(page, environment, folder / page.replace("/", "-"))
            else:
                report = Report(page, listed=[block.commands[0] for block in blocks_of(page)])
            verdict = f"{len(report.wrong)} WRONG" if report.wrong else "right"
            counts = f"{report.commands} commands, {report.compared} compared, {len(report.listed)} blocks not typed"
            print(f"{page:32} {verdict:10} {counts}, {time.monotonic() - begun:.0f} s", flush=True)
            return report

        return list(pool.map(report_of, [page for page in pages if blocks_of(page)]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make typed", description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE")
    parser.add_argument("--at-once", type=int, default=2, help="how many pages are typed at once (2)")
    given = parser.parse_args()
    if why := why_not_alone():
        print(f"the pages need a network of their own: {why}", file=sys.stderr)
        return 1
    reports = type_pages(given.pages, given.at_once)
    for report in reports:
        for wrong in report.wrong:
            print(f"\n=== {report.page}\n{wrong}")
    listed = [(report.page, first) for report in reports for first in report.listed]
    print(f"\nnot typed: {len(listed)} blocks")
    for page, first in listed:
        print(f"  {page}: {first}\n    {NOT_TYPED[page, first]}")
    wrong_ones = sum(len(report.wrong) for report in reports)
    print(
        f"\n{len(reports)} pages, {sum(each.commands for each in reports)} commands typed, "
        f"{sum(each.compared for each in reports)} outputs compared, {len(listed)} blocks not typed, {wrong_ones} wrong"
    )
    return 1 if wrong_ones else 0


if __name__ == "__main__":
    sys.exit(main())
