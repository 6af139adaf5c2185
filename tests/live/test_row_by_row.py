"""What gathers rows of a stream, as the text of a plan tells it: on Spark Connect there is no other way."""

from __future__ import annotations

import pytest

from windrow.spark.live.row_by_row import _gathering, _told

STREAM = (
    "~SubqueryAlias s\n{0}   +- View (`s`, [a#3L])\n{0}      +- ~StreamingRelationV2 Rate, rate, [], [a#1]"
)
TABLE = "SubqueryAlias t\n{0}   +- LocalRelation [a#4L]"


def plan(*lines):
    return "\n".join(
        [
            "== Parsed Logical Plan ==",
            "'Project",
            "",
            "== Analyzed Logical Plan ==",
            "a: bigint",
            *lines,
            "",
            "== Op",
        ]
    )


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["~Project [a#3L]", "+- ~Filter (a#3L > 1)", "   +- " + STREAM.format("   ")], []),
        (["~Aggregate [a#3L], [a#3L]", "+- " + STREAM.format("")], ["Aggregate"]),
        (
            ["~Project [a#3L]", "+- ~Sort [a#3L ASC NULLS FIRST], true", "   +- " + STREAM.format("   ")],
            ["Sort"],
        ),
        # a table beside a stream, on the side that keeps the rows of the stream, and on the other
        (["~Join LeftOuter, (a#3L = a#4L)", ":- " + STREAM.format(":"), "+- " + TABLE.format("")], []),
        (["~Join LeftOuter, (a#4L = a#3L)", ":- " + TABLE.format(":"), "+- " + STREAM.format("")], ["Join"]),
        (["~Join Inner, (a#3L = a#3L)", ":- " + STREAM.format(":"), "+- " + STREAM.format("")], ["Join"]),
        # in which columns the rowtimes are is not told
        (["~Union false, false", ":- " + STREAM.format(":"), "+- " + STREAM.format("")], ["Union"]),
        (
            ["~Filter a#3L IN (list#9 [])", ":  +- " + STREAM.format(":  "), "+- " + STREAM.format("")],
            ["a subquery"],
        ),
        (["Aggregate [a#4L], [a#4L]", "+- " + TABLE.format("")], []),
    ],
)
def test_what_gathers_rows_of_a_stream_is_told(lines, found):
    assert list(_gathering(_told(plan(*lines)))) == found
