"""The owners of topics, as commands read them."""

from __future__ import annotations

from barnabas.cli.failure import Failure
from barnabas.client.admin import Admin, TopicMetadata


def owners_of(admin: Admin, topics: list[TopicMetadata]) -> dict[str, str]:
    """Return the owners of topics.

    Raises:
        Failure: a newer release wrote one.
    """
    try:
        return admin.list_owners(topics)
    except ValueError as error:
        raise Failure(str(error)) from None
