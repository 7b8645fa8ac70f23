"""The continuous form: the same tables as `transformations/`, as Structured Streaming queries that never end.

    topic orders    → checked_orders → revenue_windows → topic revenue
                                     → alerts          → topic alerts
                                     → topic orders.dlq
    topic payments  → payment_events
    topic inventory → stock_events

Each query has a checkpoint of its own, named for its table or for what it sends. The tables are in the database `live`, and the answers of
`transformations/answers.sql` are views there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.spark import start
from shop import transform
from shop.alerts import alerts

DATABASE = "live"
ANSWERS = Path(__file__).parent.parent / "transformations" / "answers.sql"
FROM_TOPICS = {"checked_orders": "orders", "payment_events": "payments", "stock_events": "inventory"}
FROM_TABLES = ("revenue_windows", "alerts")
TO_TOPICS = {"sent_revenue": "revenue", "sent_alerts": "alerts", "sent_dead_letters": "orders.dlq"}
NAMES = (*FROM_TOPICS, *FROM_TABLES, *TO_TOPICS)


@dataclass(frozen=True)
class Streams:
    """The queries of one folder.

    Args:
        spark: the session.
        servers: a broker that has the shop's topics.
        folder: the project's folder; checkpoints are in it.
        trigger_s: seconds between two batches of a query; 0 reads what is there now, and ends.
        starting: where queries without a checkpoint begin in their topic, by name; elsewhere at its beginning.
    """

    spark: SparkSession
    servers: str
    folder: Path
    trigger_s: float = 1.0
    starting: Mapping[str, Mapping[str, str]] | None = None

    def start(self, name: str) -> StreamingQuery:
        """Start a query, or let it go on from its checkpoint; return when its sources are ready.

        A query whose source was late is returned too: the watcher starts it again, and looks after the others meanwhile.
        """
        trigger = {"processingTime": f"{self.trigger_s} seconds"} if self.trigger_s else {"availableNow": True}
        writer = (
            self._rows(name)
            .writeStream.queryName(name)
            .option("checkpointLocation", str(self.folder / "checkpoints" / name))
            .trigger(**trigger)
        )
        if name not in TO_TOPICS:
            return start(writer, 0, table=name)
        writer = (
            writer.format("barnabas")
            .options(**transform.connection(self.spark, self.servers))
            .option("topic", TO_TOPICS[name])
            .option("transactionalIdPrefix", f"shop-{name}")
        )
        return start(writer, 0)

    def create_views(self) -> None:
        """Make the answers, as views over the tables; the tables must be there."""
        for statement in answers():
            self.spark.sql(statement)

    def _rows(self, name: str) -> DataFrame:
        if name in FROM_TOPICS:
            starting = (self.starting or {}).get(name, {})
            records = transform.read_topic(self.spark, self.servers, FROM_TOPICS[name], f"shop-live-{name}", starting)
        table = self.spark.readStream.table
        match name:
            case "checked_orders":
                return _checked_orders(records)
            case "payment_events":
                return transform.payment_events(records)
            case "stock_events":
                return transform.stock_events(records)
            case "revenue_windows":
                return transform.revenue_windows(transform.lines(table("checked_orders")))
            case "alerts":
                return alerts(transform.lines(table("checked_orders")))
            case "sent_revenue":
                return transform.records(table("revenue_windows"), "minute", "country")
            case "sent_alerts":
                return transform.records(table("alerts"), "customer")
            case _:
                return transform.dead_letters(transform.rejected(table("checked_orders")))


def _checked_orders(records: DataFrame) -> DataFrame:
    """Count what is rejected on the way: the watcher raises an alarm when it is much."""
    counted = (F.count("*").alias("records"), F.count("reason").alias("rejected"))
    return transform.checked_orders(records).observe("checked", *counted)


def answers(replaces: str = "CREATE OR REPLACE VIEW") -> list[str]:
    """Return the statements of `answers.sql`, as plain views."""
    text = re.sub(r"(?m)^--.*\n", "", ANSWERS.read_text())
    statements = [each.strip() for each in text.split(";")]
    return [re.sub(r"^CREATE (MATERIALIZED )?VIEW", replaces, each) for each in statements if each]
