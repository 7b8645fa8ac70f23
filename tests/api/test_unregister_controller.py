"""UnregisterController: a controller that is gone leaves the metadata."""

from __future__ import annotations

import pytest

from barnabas.metadata.cluster_control import unregister_controller
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import UnregisterControllerRequest
from tests.api.controlling import NODE_ID, Controlling
from tests.metadata.controller_harness import ControllerHarness


def test_a_registered_controller_is_forgotten(controlling: Controlling) -> None:
    controlling.register_controller(7)
    assert 7 in controlling.services.image().cluster.controllers
    answer = controlling.ask(UnregisterControllerRequest(controller_id=7))
    assert (answer.error_code, answer.error_message) == (0, "")
    assert 7 not in controlling.services.image().cluster.controllers
    answer = controlling.ask(UnregisterControllerRequest(controller_id=7))
    words = "Controller ID 7 is not currently registered."
    assert (answer.error_code, answer.error_message) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, words)


def test_the_active_controller_stays(controlling: Controlling) -> None:
    answer = controlling.ask(UnregisterControllerRequest(controller_id=NODE_ID))
    words = "Controller cannot unregister itself while it is active."
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, words)


@pytest.mark.parametrize("level", [32, None])
def test_an_old_metadata_version_keeps_them(level: int | None) -> None:
    node = ControllerHarness()
    image = node.controller.image
    view = node.view()._replace(image=image._replace(features=image.features._replace(metadata_version=level)))
    with pytest.raises(KafkaError, match="too old to support controller unregistration") as raised:
        unregister_controller(view, UnregisterControllerRequest(controller_id=7))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
