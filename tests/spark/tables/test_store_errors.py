"""A store's refusal as one sentence."""

from __future__ import annotations

import pytest

from barnabas.spark.tables.store_errors import in_words, reached

_REFUSED = (
    "Generic S3 error\n   \x1b[31m↳\x1b[0m Error performing list request\n   \x1b[31m↳\x1b[0m 404 Not Found\n"
    '   \x1b[31m↳\x1b[0m <?xml version="1.0"?>\n<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>'
)
_AWAY = "Generic S3 error\n  \x1b[31m↳\x1b[0m HTTP error\n    \x1b[31m↳\x1b[0m tcp connect error\n  \n"

_ARROW = "When initiating multiple part upload: AWS Error ACCESS_DENIED during CreateMultipartUpload operation: Access Denied"


@pytest.mark.parametrize(
    ("text", "words"),
    [(_ARROW, "ACCESS_DENIED"), (_REFUSED, "NoSuchBucket"), (_AWAY, "tcp connect error"), ("", "FileNotFoundError")],
)
def test_the_stores_own_word(text: str, words: str) -> None:
    assert in_words(FileNotFoundError(text) if text else FileNotFoundError()) == words


def test_a_refusal_names_the_table_and_the_way_out() -> None:
    with (
        pytest.raises(ValueError, match=r"the store of s3://b/t does not let .* there: NoSuchBucket\. Check the place"),
        reached("s3://b/t"),
    ):
        raise OSError(_REFUSED)
