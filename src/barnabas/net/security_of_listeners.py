"""The security of a node's listeners, and of the connections that it dials. A node whose listeners are all PLAINTEXT loads nothing of it.

Source: Kafka's `ChannelBuilders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.endpoints import Listener as Endpoint
from barnabas.config.listener_security import CONTROLLER_MECHANISM, dialling_settings
from barnabas.metadata.config_schema import ConfigError
from barnabas.net.listener_security import ListenerSecurity
from barnabas.security.setting_error import SecuritySettingError

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.security.client_security import ClientSecurity

__all__ = ["controllers_security", "dialling_security", "securities"]


def securities(
    config: BrokerConfig,
    endpoints: Iterable[Endpoint],
    image: Callable[[], MetadataImage],
    now_ms: Callable[[], int],
    stores: RenewedStores,
) -> dict[str, ListenerSecurity]:
    """Return the security of each listener that is not PLAINTEXT, by its name.

    Args:
        image: returns the metadata as of now; SCRAM asks it at each login.
        stores: get those of the listeners, which are renewed from then on.

    Raises:
        CannotStart: a setting cannot be used; the text is one line, without secrets.
    """
    secured = [each for each in endpoints if each.security_protocol != "PLAINTEXT"]
    if not secured:
        return {}
    from barnabas.net.security_of_listener import security_of

    try:
        return {each.name: security_of(config, each, image, now_ms, stores) for each in secured}
    except (SecuritySettingError, ConfigError) as error:
        raise CannotStart(str(error)) from None


def dialling_security(
    config: BrokerConfig, name: str, mechanism_setting_name: str, stores: RenewedStores
) -> ClientSecurity | None:
    """Return how this node dials a listener of another node; None in plain text.

    Args:
        stores: have those of this listener, or get them; they are renewed from then on.

    Raises:
        CannotStart: a setting cannot be used.
    """
    try:
        settings = dialling_settings(config, name, mechanism_setting_name)
        if settings["security.protocol"] == "PLAINTEXT":
            return None
        from barnabas.net.security_of_listener import dialled_security

        return dialled_security(settings, name, stores)
    except (SecuritySettingError, ConfigError) as error:
        raise CannotStart(f"this node cannot dial listener {name}: {error}") from None


def controllers_security(config: BrokerConfig, stores: RenewedStores) -> ClientSecurity | None:
    """Return how this node dials controllers; None in plain text. Raises as `dialling_security`."""
    names = config.list_value("controller.listener.names")
    return dialling_security(config, names[0], CONTROLLER_MECHANISM, stores) if names else None
