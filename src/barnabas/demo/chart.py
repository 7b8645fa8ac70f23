"""Draws the results into a file; needs no screen.

Lines that a customer took back within the hour, bulk orders of a mistyped quantity most of them, are left out of the bars: order and
cancellation are in different hours or even days, and either would flatten every other bar. They are marked instead.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.demo import answers
from barnabas.demo.answers import Row

if TYPE_CHECKING:
    from barnabas.demo.results import Results

_BLUE = "#3b6ea5"
_ORANGE = "#d9822b"
_RED = "#b3312c"
_THOUSANDS = "revenue in thousand £"
_LONGEST_NAME = 30


def draw_chart(results: Results, path: Path) -> None:
    """Draw revenue over the days, per country and per hour, and the best sellers, into a PNG file."""
    from matplotlib.figure import Figure

    revenue = results.revenue()
    taken_back = results.taken_back()
    rest = answers.without(revenue, taken_back)
    figure = Figure(figsize=(14, 9), layout="constrained")
    grid = figure.add_gridspec(2, 3, width_ratios=(5, 5, 6))
    _days(figure.add_subplot(grid[0, :]), rest, taken_back)
    _countries(figure.add_subplot(grid[1, 0]), rest)
    _sellers(figure.add_subplot(grid[1, 1]), results)
    _hours(figure.add_subplot(grid[1, 2]), rest)
    total = sum(row["amount_thousandths"] for row in revenue) / 1000
    figure.suptitle(f"The shop: revenue £{total:,.2f}, cancellations deducted", fontsize=14)
    figure.savefig(path, dpi=110)


def _days(axes: Any, revenue: list[Row], taken_back: list[Row]) -> None:
    days = dict(answers.revenue_per_day(revenue))
    axes.bar(list(days), [_thousands(amount) for amount in days.values()], color=_BLUE, width=0.9)
    axes.set_title("Revenue per day")
    axes.set_ylabel(_THOUSANDS)
    if not taken_back:
        return
    by_day: Counter[date] = Counter()
    for row in taken_back:
        by_day[row["at"].date()] += row["amount_thousandths"]
    amount = _thousands(sum(by_day.values()))
    axes.plot(
        list(by_day),
        [_thousands(max(days.get(day, 0), 0)) for day in by_day],
        linestyle="none",
        marker="v",
        markersize=9,
        color=_RED,
        label=f"not in the bars: {len(taken_back)} large order lines over £{amount:,.0f} thousand, cancelled within the hour",
    )
    axes.legend(loc="upper left", frameon=False)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.15)  # room for the legend


def _countries(axes: Any, revenue: list[Row]) -> None:
    best = [each for each in answers.revenue_per_country(revenue) if each.amount_thousandths > 0][:10][::-1]
    bars = axes.barh(
        [each.country for each in best], [_thousands(each.amount_thousandths) for each in best], color=_BLUE
    )
    # One country may have more revenue than all others together: the numbers say what the short bars cannot.
    axes.bar_label(bars, [f"{_thousands(each.amount_thousandths):,.1f}" for each in best], padding=3, fontsize=8)
    axes.margins(x=0.25)
    axes.set_xlabel(_THOUSANDS)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("Revenue per country, the first ten")


def _sellers(axes: Any, results: Results) -> None:
    best = answers.best_sellers(results.best_sellers(), 10)[::-1]
    names = [str(row["description"] or row["stock_code"])[:_LONGEST_NAME] for row in best]
    axes.barh(range(len(best)), [_thousands(row["amount_thousandths"]) for row in best], color=_ORANGE)
    axes.set_yticks(range(len(best)), names, fontsize=8)
    axes.set_xlabel(_THOUSANDS)
    axes.set_title("Best sellers, by revenue")


def _hours(axes: Any, revenue: list[Row]) -> None:
    amounts = answers.revenue_per_hour(revenue)
    axes.bar(range(24), [_thousands(amount) for amount in amounts], color=_BLUE)
    axes.set_xticks(range(0, 24, 3))
    axes.set_xlabel("hour of the day")
    axes.set_ylabel(_THOUSANDS)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("Revenue per hour, of all days")
    if min(amounts) < 0:
        axes.axhline(0, color="black", linewidth=0.8)
        hours = ", ".join(str(hour) for hour, amount in enumerate(amounts) if amount < 0)
        note = f"below zero at {hours}: more was cancelled than ordered"
        axes.annotate(note, (0.5, 0.97), xycoords="axes fraction", ha="center", va="top", fontsize=8)
        axes.set_ylim(top=axes.get_ylim()[1] * 1.1)


def _thousands(thousandths: int) -> float:
    """Return an amount in thousand pounds."""
    return thousandths / 1_000_000
