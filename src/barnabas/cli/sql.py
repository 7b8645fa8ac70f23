"""`barnabas sql`: one SQL statement over topics, with DuckDB in this process.

The topics are read while the statement runs, between two places that are fixed before. Nothing is written to the
cluster.
"""

from __future__ import annotations

import re
import sys

import click

from barnabas import arrow
from barnabas.cli.failure import Failure, Missing
from barnabas.cli.isolation import isolation_option
from barnabas.cli.result_rows import ROW_OUTPUTS, RowsOutput
from barnabas.cli.session import Session, session_options_of_sql
from barnabas.client.bootstrap import format_address
from barnabas.spark.plain_errors import QueryError

EXAMPLES = """\b
Columns: partition, "offset", timestamp, key, value,
headers, topic, timestampType. SQL reserves offset.

\b
Places (--from, --to):
  earliest latest      where the log begins and ends
  -1h @TIME            by time, or 2026-11-21T08:00
  group:NAME cut:NAME  what a group committed, a cut
  47                   this offset
  +2 -3                2 after the start, 3 before the end
"""
_RESERVED = re.compile(r'(?<!")\boffset\b(?!")', re.IGNORECASE)


@click.command(epilog=EXAMPLES)
@click.argument("statement", metavar="STATEMENT")
@click.option("--from", "from_", metavar="PLACE", default="earliest", show_default=True, help="Where topics begin.")
@click.option("--to", metavar="PLACE", default="latest", show_default=True, help="Where topics end.")
@click.option(
    "--value",
    type=click.Choice(["text", "json", "binary"]),
    default="text",
    show_default=True,
    help="Values as text, as JSON with fields (value.country), or as bytes.",
)
@click.option(
    "--key", type=click.Choice(["text", "json", "binary"]), default="text", show_default=True, help="Keys, likewise."
)
@isolation_option
@session_options_of_sql(ROW_OUTPUTS)
def sql(session: Session, statement: str, from_: str, to: str, value: str, key: str, isolation_level: str) -> None:
    """Run one SQL STATEMENT over topics; `-` reads it from standard input.

    \b
    barnabas sql "SELECT key, count(*) FROM orders GROUP BY key"
    barnabas sql --value json "SELECT value.country FROM orders"
    """
    statement = sys.stdin.read() if statement == "-" else statement
    assert isinstance(session.output, RowsOutput)
    open_query = arrow.TopicQuery
    names, bootstrap = _topics(session)
    try:
        with open_query(
            statement,
            names,
            bootstrap=bootstrap,
            from_=from_,
            to=to,
            key=key,
            value=value,
            isolation=isolation_level,
            timeout_ms=session.timeout_ms,
            security=session.properties,
        ) as query:
            session.output.pages(query.columns, query.types, query.pages())
    except arrow.NoSuchTable as error:
        hint = "`barnabas topic list` shows which exist; a name with other signs than letters and digits needs double quotes"
        raise Failure(str(error), hint, Missing("topic", error.name)) from None
    except arrow.StatementError as error:
        raise Failure(str(error), _advice(str(error), statement)) from None
    except arrow.NotText as error:
        raise Failure(str(error), "--key binary and --value binary read bytes") from None
    except (ValueError, QueryError) as error:
        raise Failure(str(error)) from None


def _topics(session: Session) -> tuple[list[str], str]:
    """Return the names of all topics, and the address with its port."""
    with session.admin() as admin:
        address = ",".join(format_address(*each) for each in admin.cluster.bootstrap)
        return [each.name for each in admin.list_topics(internal=True)], address


def _advice(message: str, statement: str) -> str | None:
    if "syntax error" in message and _RESERVED.search(statement):
        return 'SQL reserves the word offset: write "offset" in double quotes'
    return None
