"""The line of the magic, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("IPython")

from windrow.cli.output.formats import Format
from windrow.errors import UsageError
from windrow.notebook.magic_options import help_text, read_line


def test_a_line_has_the_options_of_the_command_line_and_a_name_for_the_result():
    line = read_line("--table w='a b.parquet' -t v=c.csv --param low=3 --limit 7 --key a,b >> spells")
    assert line.options.tables == {"w": ["a b.parquet"], "v": ["c.csv"]}
    assert line.options.params == {"low": "3"}
    assert (line.limit, line.envelope, line.key, line.result) == (7, "delta", ("a", "b"), "spells")
    assert (line.format, line.names_session) == (Format.TABLE, False)


def test_an_output_says_the_form_and_master_the_session():
    line = read_line("--output rows.csv --master local[2]")
    assert (line.format, line.output, line.names_session) == (Format.CSV, Path("rows.csv"), True)


def test_live_queries_have_a_checkpoint_a_trigger_and_a_form_of_changes():
    line = read_line("--live --checkpoint c --trigger now --envelope op --limit 5 >> q")
    assert line.live is not None
    assert (line.live.checkpoint, line.live.as_spark) == (Path("c"), {"availableNow": True})
    assert (line.envelope, line.limit, line.result) == ("op", 5, "q")
    assert read_line("--limit 5").live is None


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("--nope", "MALFORMED_OPTION"),
        ("--limit many", "MALFORMED_OPTION"),
        ("--table 'open", "MALFORMED_OPTION"),
        (">> 2nd", "INVALID_NAME"),
        ("--format parquet", "NO_OUTPUT"),
        ("--live --key a", "UNKNOWN_OPTION"),
        ("--live --format csv", "UNKNOWN_OPTION"),
        ("--live --ui", "UNKNOWN_OPTION"),
        ("--trigger now", "UNKNOWN_OPTION"),
    ],
)
def test_a_line_that_is_wrong_is_refused_with_a_hint(line, condition):
    with pytest.raises(UsageError) as refused:
        read_line(line)
    assert refused.value.condition == condition
    assert refused.value.hint


def test_help_lists_the_options():
    text = help_text()
    assert "--table" in text
    assert "--changelog" in text
    assert "[bold]" not in text
