"""Random expressions of each type, over the columns of `test_computed`."""

from __future__ import annotations

from random import Random

__all__ = ["KINDS", "expression"]

_LEAVES = {
    "int": "i; 0; -3; 100; CAST(NULL AS INT)",
    "long": "x; y; u.n; 5L; -2L",
    "short": "h; 1S",
    "double": "f; g; -2D; CAST('NaN' AS DOUBLE); -0.0D",
    "float": "r; CAST(0.5 AS FLOAT)",
    "text": "s; t; o; u.of.t; 'a'; ''; 'A'; CAST(NULL AS STRING)",
    "truth": "b; true; CAST(NULL AS BOOLEAN)",
    "date": "day; DATE '2000-02-29'; DATE '1582-12-31'",
    "time": "at; TIMESTAMP '2026-03-29 01:30:00'",
    "local": "local; TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'",
    "decimal": "d; wide; 1.5; -99.999",
    "interval": "m; INTERVAL 1 HOUR; INTERVAL '-1 02:03:04.5' DAY TO SECOND",
}
KINDS = tuple(_LEAVES)
_NUMBERS = "({same} + {same}); ({same} - {same}); ({same} * {same}); abs({same}); (- {same})"
_ANY = (
    "CASE WHEN {truth} THEN {same} WHEN {truth} THEN {same} ELSE {same} END; coalesce({same}, {same});"
    " if({truth}, {same}, {same}); nullif({same}, {same}); greatest({same}, {same})"
)
_FORMS = {
    "int": f"{_NUMBERS}; length({{text}}); hour({{time}}); minute({{local}}); second({{time}});"
    " year({date}); quarter({time}); month({date}); dayofyear({local}); unix_date({date});"
    " ({int} % 7); pmod({int}, 3); datediff({date}, {date})",
    "long": f"{_NUMBERS}; unix_micros({{time}}); ({{long}} DIV 3); ({{long}} % 7L); CAST({{int}} AS BIGINT)",
    "short": f"{_NUMBERS}",
    "double": f"{_NUMBERS}; ({{double}} / -3D); ({{long}} / 4); CAST({{int}} AS DOUBLE)",
    "float": f"{_NUMBERS}",
    "decimal": f"{_NUMBERS}; ({{long}} * 1.5); CAST({{decimal}} AS DECIMAL(38,6)); ({{int}} + {{decimal}})",
    "text": "lower({text}); upper({text}); replace({text}, 'a', 'zz'); substring({text}, 2, 9);"
    " substring({text}, 0, 1); concat({text}, {text}); ({text} || {int}); split_part({text}, '/', 2);"
    " date_format({time}, 'yyyy-MM-dd'); date_format({local}, 'HH:mm');"
    " CAST({long} AS STRING); CAST({date} AS STRING); regexp_extract({text}, '(p+)l', 1); trim({text})",
    "truth": "({int} < {int}); ({long} >= {long}); ({double} = {double}); ({double} <= {float});"
    " ({text} < {text}); ({date} > {date}); ({time} <=> {time}); ({local} <> {local});"
    " ({decimal} < {decimal}); ({interval} = {interval}); ({int} < {double}); ({truth} AND {truth});"
    " ({truth} OR {truth}); (NOT {truth}); ({double} IS NULL); ({interval} IS NOT NULL);"
    " ({int} IN (1, 7, NULL));"
    " ({text} NOT IN ('a', 'b')); ({text} LIKE 'a%'); ({text} LIKE '%/%'); contains({text}, 'a');"
    " ({double} BETWEEN {double} AND {double}); ({text} RLIKE '[a-c]+')",
    "date": "CAST({time} AS DATE); CAST({local} AS DATE); date_add({date}, -30)",
    "time": "({time} + {interval}); ({time} - {interval}); timestamp_micros({long});"
    " CAST({date} AS TIMESTAMP); date_trunc('HOUR', {time})",
    "local": "timestampadd(MICROSECOND, {long}, {local}); CAST({time} AS TIMESTAMP_NTZ);"
    " ({local} + {interval})",
    "interval": "CAST({interval} AS INTERVAL HOUR); CAST({interval} AS INTERVAL DAY TO MINUTE);"
    " CAST({interval} AS INTERVAL MINUTE TO SECOND); ({time} - {time}); ({interval} + {interval});"
    " ({interval} * 2)",
}


def expression(random: Random, kind: str, depth: int) -> str:
    """SQL of this type, with calls nested at most so deep."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(_LEAVES[kind].split("; "))
    form = random.choice(f"{_ANY}; {_FORMS[kind]}".split("; "))
    return form.format_map(_Parts(random, kind, depth - 1))


class _Parts(dict[str, str]):
    """Draws an expression for each place of a form."""

    def __init__(self, random: Random, kind: str, depth: int) -> None:
        super().__init__()
        self._random, self._kind, self._depth = random, kind, depth

    def __missing__(self, kind: str) -> str:
        return expression(self._random, self._kind if kind == "same" else kind, self._depth)
