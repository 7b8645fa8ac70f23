"""The scripts of others are the files of their packages, with their licences."""

import base64
import hashlib
import json
import re

from barnabas.console.app import STATIC


def test_each_script_is_what_the_list_says() -> None:
    listed = json.loads((STATIC / "vendored.json").read_text())
    ours = {"console.js"}
    assert {each["file"] for each in listed} | ours == {path.name for path in STATIC.glob("*.js")}
    for each in listed:
        digest = hashlib.sha512((STATIC / each["file"]).read_bytes()).digest()
        assert each["integrity"] == f"sha512-{base64.b64encode(digest).decode()}"
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", each["tarball_integrity"])
        assert "Zero" in (STATIC / each["license_file"]).read_text()
        assert each["license"] == "0BSD"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name in ("console.css", "console.js"):
        assert not re.search(r"https?://|@import|url\(", (STATIC / name).read_text())
