"""Draws the results into a file; needs no screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.demo import answers
from barnabas.demo.pipeline import Pipeline
from barnabas.demo.results import Row

_BLUE = "#3b6ea5"
_ORANGE = "#d9822b"


def draw_chart(pipeline: Pipeline, path: Path) -> None:
    """Draw revenue over the days, per country and per hour, and the best sellers, into a PNG file."""
    from matplotlib.figure import Figure

    revenue = pipeline.revenue.rows()
    figure = Figure(figsize=(14, 8), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    _days(figure.add_subplot(grid[0, :]), revenue)
    _countries(figure.add_subplot(grid[1, 0]), revenue)
    _sellers(figure.add_subplot(grid[1, 1]), pipeline)
    _hours(figure.add_subplot(grid[1, 2]), revenue)
    total = sum(row["amount_thousandths"] for row in revenue) / 1000
    figure.suptitle(f"The shop: revenue {total:,.2f}", fontsize=14)
    figure.savefig(path, dpi=110)


def _days(axes: Any, revenue: list[Row]) -> None:
    days = answers.revenue_per_day(revenue)
    axes.bar([day for day, _ in days], [amount / 1000 for _, amount in days], color=_BLUE, width=0.9)
    axes.set_title("Revenue per day")
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _countries(axes: Any, revenue: list[Row]) -> None:
    best = [each for each in answers.revenue_per_country(revenue) if each.amount_thousandths > 0][:10][::-1]
    axes.barh([each.country for each in best], [each.amount_thousandths / 1000 for each in best], color=_BLUE)
    # One country may have more revenue than all others together.
    axes.set_xscale("log")
    axes.set_title("Revenue per country")


def _sellers(axes: Any, pipeline: Pipeline) -> None:
    best = answers.best_sellers(pipeline.best_sellers.rows(), 10)[::-1]
    names = [f"{(row['description'] or row['stock_code'])[:26]}" for row in best]
    axes.barh(range(len(best)), [row["amount_thousandths"] / 1000 for row in best], color=_ORANGE)
    axes.set_yticks(range(len(best)), names, fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="x", rotation=30)
    axes.set_title("Best sellers")


def _hours(axes: Any, revenue: list[Row]) -> None:
    axes.bar(range(24), [amount / 1000 for amount in answers.revenue_per_hour(revenue)], color=_BLUE)
    axes.set_xticks(range(0, 24, 3))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("Revenue per hour of the day")
