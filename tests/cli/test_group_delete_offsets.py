"""`group delete-offsets` against a real broker; the transcript has the rest."""

from __future__ import annotations

from click.testing import CliRunner

import barnabas
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from barnabas.main import command_group


def test_only_the_named_partitions_are_forgotten(barnabas: barnabas.Broker) -> None:
    barnabas.create_topic("t", partitions=3)
    kept, gone = TopicPartition("t", 0), TopicPartition("t", 2)
    with Admin(barnabas.bootstrap_servers) as admin:
        admin.alter_group_offsets("g", {kept: CommittedOffset(4), gone: CommittedOffset(5)})
        command = ["group", "delete-offsets", "g", "--topic", "t:1,2", "-b", barnabas.bootstrap_servers]
        found = CliRunner().invoke(command_group(), command, prog_name="barnabas")
        assert found.exit_code == 0, found.stderr
        assert found.stdout.splitlines()[1:] == ["g      t      2          5               deleted"]
        assert set(admin.list_group_offsets("g")) == {kept}
