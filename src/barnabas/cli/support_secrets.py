"""The secrets that a support bundle leaves out.

- A setting is shown only if Kafka or barnabas documents it and it is no password; `listener.name.NAME.` may stand before it. The
  value of any other name is hidden: it may be a plugin's password.
- The hidden values of a node's settings, and the passwords of a client's, are left out wherever else they stand.
- A line of a log that names a password, a secret, a token or a key with `=` or `:` ends there, as does one with `Bearer` or `Basic`.
  The lines of a PEM block, and what stands before `@` in a URL, are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from barnabas.settings_table import rows
from barnabas.words.hidden_values import HIDDEN, LONG, hidden_in

_WORD = r"(?:password|passwd|passphrase|secret|token|jaas|credential|api[_-]?key|private[_-]?key|\.key\b)"
_NAMED = re.compile(rf"""(?im)^(.*?{_WORD}[\w.-]*["']?\s*[=:]).+$""")
_HEADER = re.compile(r"(?im)\b(bearer|basic)\s+\S.*$")
_PEM = re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL)
_URL = re.compile(r"://[^/\s@\"]+@")
_PLAIN = re.compile(r"[\d.]+|true|false|null", re.IGNORECASE)
"""Values that stand everywhere: to leave them out would hide nothing and spoil the rest."""
_LISTENER = re.compile(r"^listener\.name\.[^.]+\.(?:(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.)?")


class Secrets:
    """Hides the values that must not leave a machine."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._passwords = {each.name for each in rows() if each.kind.lower() == "password"}
        self._harmless = {each.name for each in rows()} - self._passwords

    def __repr__(self) -> str:
        return f"<Secrets values={len(self._values)}>"

    def add_settings(self, settings: Mapping[str, str], *, may_be_unknown: bool = False) -> None:
        """Learn the values that stand in no file.

        Args:
            may_be_unknown: whether values of undocumented names may be secrets; of a client they are addresses and the like.
        """
        for name, value in settings.items():
            is_secret = _is_named_secret(name) or _LISTENER.sub("", name) in self._passwords
            if is_secret or (may_be_unknown and not self._is_shown(name)):
                found = {value.strip(), *re.findall(r'"([^"]+)"', value)}
                self._values.update(each for each in found if len(each) >= LONG and not _PLAIN.fullmatch(each))
                self._values.update(json.dumps(each)[1:-1] for each in list(self._values))

    def shown(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return settings with the values that may be seen; the others are hidden."""
        return {name: value if self._is_shown(name) else HIDDEN for name, value in settings.items()}

    def without(self, text: str) -> str:
        """Return a text without the values that are known, PEM blocks and passwords in URLs; JSON stays JSON."""
        text = hidden_in(text, self._values)
        return _URL.sub(f"://{HIDDEN}@", _PEM.sub(HIDDEN, text))

    def of_log(self, text: str) -> str:
        """Return lines of a log without secrets, those that only their names tell of too."""
        text = _HEADER.sub(rf"\1 {HIDDEN}", self.without(text))
        return _NAMED.sub(rf"\1{HIDDEN}", text)

    def _is_shown(self, name: str) -> bool:
        own = _LISTENER.sub("", name)
        return own in self._harmless and not _is_named_secret(own)


def _is_named_secret(name: str) -> bool:
    return re.search(_WORD, name, re.IGNORECASE) is not None
