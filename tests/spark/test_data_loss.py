"""Records that are gone fail the query, or are logged."""

from __future__ import annotations

import logging

import pytest

from barnabas.spark.data_loss import DataLoss, report_data_loss


def test_the_error_says_which_option_goes_on():
    with pytest.raises(DataLoss, match=r'^Offsets 0 to 5 are gone\. Some data .*"failOnDataLoss" to "false"'):
        report_data_loss("Offsets 0 to 5 are gone", fail=True)


def test_or_a_warning_is_logged(caplog):
    report_data_loss("Offsets 0 to 5 are gone", fail=False)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("barnabas.spark", logging.WARNING)
    assert record.getMessage().startswith("Offsets 0 to 5 are gone")
