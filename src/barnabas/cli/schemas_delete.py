"""`barnabas schemas delete`: a version of a subject, or all.

A deleted version is not found by its subject any longer; its id still is, so that records can be decoded. `--permanent` deletes the
schema too, and no record with its id can be decoded then.
"""

from __future__ import annotations

import click

from barnabas.cli.failure import Failure
from barnabas.cli.output import Output
from barnabas.cli.output_options import output_options
from barnabas.cli.question import typed_answer
from barnabas.cli.registry_options import registry_options
from barnabas.cli.schema_files import version_of
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects
from barnabas.words.printable import printable


@click.command()
@click.argument("subject", metavar="SUBJECT")
@click.argument("version", metavar="[VERSION]", required=False, callback=version_of)
@click.option("--permanent", is_flag=True, help="For good: records with the schema's id cannot be decoded any longer.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for the subject's name.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@registry_options
@output_options
def delete(
    settings: RegistrySettings,
    output: Output,
    subject: str,
    version: int | str | None,
    permanent: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a subject with all its versions, or one VERSION. It asks for the subject's name first.

    \b
    barnabas schemas delete orders-value 2 --registry http://HOST:8081
    """
    subjects = Subjects(settings)
    if dry_run:
        deleted = subjects.versions(subject) if version is None else [subjects.version(subject, version).version]
    else:
        if not yes:
            _ask(subject, version, permanent)
        deleted = subjects.delete(subject, version, permanent=permanent)
    status = f"{'would be deleted' if dry_run else 'deleted'}{' for good' if permanent else ''}"
    output.table(("SUBJECT", "VERSION", "STATUS"), [(subject, each, status) for each in deleted])


def _ask(subject: str, version: int | str | None, permanent: bool) -> None:
    """Ask for the subject's name.

    Raises:
        Failure: it was not typed.
    """
    what = "all versions" if version is None else f"version {version}"
    for_good = " for good" if permanent else ""
    if typed_answer(f"Type the subject's name to delete {what} of {printable(subject)}{for_good}") != subject:
        raise Failure("nothing was deleted: that is not the subject's name", "--yes deletes without asking")
