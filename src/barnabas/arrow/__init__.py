"""Topics as Arrow, without Spark: `barnabas.read`, and SQL over topics with DuckDB.

    import barnabas

    orders = barnabas.read("orders", from_="-1h")
    orders.table()

| module | holds |
|---|---|
| `read` | `barnabas.read`: its arguments, and where reading begins and ends |
| `positions` | a beginning or an end as users write it |
| `records` | the records of a range: an Arrow stream, batches, a table |
| `text_columns` | keys and values as text |
| `dataset` | the same records as a pyarrow dataset, which decodes only the columns that are asked for |
| `sql` | a DuckDB connection in which topics are tables |

The records come through the Spark source's fetcher and decoder (`barnabas.spark.source`), so both read the same.

The package itself imports no pyarrow and no DuckDB; each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.arrow.dataset import RecordsDataset as RecordsDataset
    from barnabas.arrow.read import read as read
    from barnabas.arrow.records import Records as Records
    from barnabas.arrow.sql import NoSuchTable as NoSuchTable
    from barnabas.arrow.sql import StatementError as StatementError
    from barnabas.arrow.sql import TopicQuery as TopicQuery
    from barnabas.arrow.text_columns import NotText as NotText
    from barnabas.spark.plain_errors import QueryError as QueryError
    from barnabas.spark.source.data_loss import DataLoss as DataLoss

__all__ = [
    "DataLoss",
    "NoSuchTable",
    "NotText",
    "QueryError",
    "Records",
    "RecordsDataset",
    "StatementError",
    "TopicQuery",
    "read",
]

__getattr__ = imported_when_used(
    __name__,
    DataLoss="barnabas.spark.source.data_loss",
    NoSuchTable="barnabas.arrow.sql",
    NotText="barnabas.arrow.text_columns",
    QueryError="barnabas.spark.plain_errors",
    Records="barnabas.arrow.records",
    RecordsDataset="barnabas.arrow.dataset",
    StatementError="barnabas.arrow.sql",
    TopicQuery="barnabas.arrow.sql",
    read="barnabas.arrow.read",
)
