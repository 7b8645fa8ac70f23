"""Files of previews."""

from __future__ import annotations

from barnabas.console.changes.given import SentFile
from barnabas.console.kept_files import FILES_MAX, KEPT_S, KeptFiles


def test_few_and_not_for_long() -> None:
    now_s = 0.0
    kept = KeptFiles(lambda: now_s)
    files = [SentFile("f", b"%d" % number) for number in range(FILES_MAX + 1)]
    keys = [kept.keep(each) for each in files]
    assert kept.of(keys[0]) is None
    assert [kept.of(each) for each in keys[1:]] == files[1:]
    assert repr(kept) == f"<KeptFiles {FILES_MAX} bytes={FILES_MAX}>"
    kept.forget(keys[1])
    kept.forget("invented")
    assert kept.of(keys[1]) is None
    now_s = KEPT_S
    kept.forget_old()
    assert repr(kept) == "<KeptFiles 0 bytes=0>"
