"""`barnabas topic configs`: the settings that a topic may have, also before there is one."""

from __future__ import annotations

import click

from barnabas.cli.failure import Failure
from barnabas.cli.session import Session, complete_topic_settings, session_options
from barnabas.settings_table import near_setting, settings_of


@click.command()
@click.argument("keys", nargs=-1, metavar="[SETTING]…", shell_complete=complete_topic_settings)
@session_options
def configs(session: Session, keys: tuple[str, ...]) -> None:
    """List the settings that a topic may have, with their defaults and meaning. No broker is asked.

    The defaults are Kafka's; a broker may have its own, which `barnabas topic describe NAME --all` shows.
    """
    known = settings_of("topic")
    for key in keys:
        if key not in {each.name for each in known}:
            raise Failure(
                f"a topic has no setting {key}{near_setting('topic', key)}", "`barnabas topic configs` lists them"
            )
    columns = ("KEY", "TYPE", "DEFAULT", "DOCUMENTATION")
    rows = [(each.name, each.kind, each.default, each.meaning) for each in known if not keys or each.name in keys]
    session.output.table(columns, rows, hidden_first=("TYPE",), below=("DOCUMENTATION",))
