from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.cli.failure import Failure
from barnabas.cli.sending_once import create_state_topic, explained_library
from barnabas.client.admin import Admin, ConfigResource, ResourceType, result
from barnabas.embedded.broker import Broker


def test_the_topic_of_the_notes_is_compacted_and_may_exist(barnabas: Broker) -> None:
    with Admin(barnabas.bootstrap_servers) as admin:
        for _ in range(2):
            create_state_topic(admin, "__barnabas_notes")
        resource = ConfigResource(ResourceType.TOPIC, "__barnabas_notes")
        (entry,) = result(admin.describe_configs([resource], names=["cleanup.policy"])[resource])
    assert entry.value == "compact"


def test_an_error_of_the_library_is_one_sentence() -> None:
    taken_over = "another client with the same transactional or instance id has taken over"
    with pytest.raises(Failure, match=taken_over), explained_library("the replay was interrupted"):
        raise KafkaException(KafkaError(KafkaError._FENCED))
