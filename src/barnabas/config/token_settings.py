"""The settings of delegation tokens.

    delegation.token.secret.key                  without it there are no delegation tokens; the same on all brokers and controllers
    delegation.token.max.lifetime.ms             how long a token may live, however often it is renewed
    delegation.token.expiry.time.ms              how long it lives after its creation and after each renewal
    delegation.token.expiry.check.interval.ms    how often the active controller removes the expired ones

Source: Kafka's `DelegationTokenManagerConfigs`; KIP-48.
"""

from __future__ import annotations

from barnabas.config.setting_values import SettingValues
from barnabas.security.delegation_tokens import TokenKey, TokenSettings

__all__ = ["TOKEN_SETTINGS", "token_settings"]

_PREFIX = "delegation.token."
_SECRET = f"{_PREFIX}secret.key"
_MAX_LIFETIME, _EXPIRY_TIME = f"{_PREFIX}max.lifetime.ms", f"{_PREFIX}expiry.time.ms"
_CHECK_INTERVAL = f"{_PREFIX}expiry.check.interval.ms"
TOKEN_SETTINGS = frozenset({_SECRET, _MAX_LIFETIME, _EXPIRY_TIME, _CHECK_INTERVAL})


def token_settings(config: SettingValues) -> TokenSettings | None:
    """Return the settings of delegation tokens; None if the node has no secret for them."""
    secret = config.value(_SECRET)
    if not secret:
        return None
    assert isinstance(secret, str), "a setting of the type PASSWORD"
    return TokenSettings(
        TokenKey(secret),
        config.int_value(_MAX_LIFETIME),
        config.int_value(_EXPIRY_TIME),
        config.int_value(_CHECK_INTERVAL),
    )
