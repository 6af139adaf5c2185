"""A plan as one Spark query: its rows where nothing changes over time.

The SQL of its operator alone defines what each node means. Operators of time-varying relations and of live
queries are compared with it at every instant, and it computes a table at one instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from windrow.kernels.sorting import SortKey
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.reader.read_over import AT
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = ["sql_of_plan"]

Windows = Callable[["plan.TimeWindows | plan.SessionWindows", SqlText], SqlText]
"""Makes a query for the time windows of the rows of another."""

_JOINS = {"left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "semi": "LEFT SEMI JOIN",
          "anti": "LEFT ANTI JOIN", "inner": "JOIN"}  # fmt: skip
_LEFT, _RIGHT, _PAIRS = "__l", "__r", "__p"
_ONE, _NUMBER = "__one", "__number"


def sql_of_plan(node: plan.Node, windows: Windows | None = None) -> SqlText:
    """A query for the rows of a plan, with columns named by id.

    Parameters
    ----------
    windows
        Replaces time windows; it receives the query for their rows.

    Returns
    -------
    The text. Inputs stand in it by their keys; those have columns of the names that the plan knows.
    """
    return _Sql(windows).of(node)


class _Sql:
    def __init__(self, windows: Windows | None) -> None:
        self._windows = windows

    def of(self, node: plan.Node) -> SqlText:
        match node:
            case plan.Scan(table=SqlText() as text):
                return _renamed(text, node.columns)
            case plan.Input():
                names = ", ".join(f"{quoted(column.name)} AS {column.id}" for column in node.columns)
                return SqlText.of(f"SELECT {names} FROM ", RelationText(node.key))
            case plan.Filter():
                return self._over(node.input, node.scope.select(SqlText.of(f"{ROWS}.*"), _texts(node)))
            case plan.Project():
                return _renamed(self._over(node.input, node.scope.select(node.listed)), node.columns)
            case plan.Join():
                return self._join(node)
            case plan.Mark():
                return self._mark(node)
            case plan.Value():
                kind = "JOIN" if node.is_there else "LEFT JOIN"
                return self._joined(node.left, node.right, kind, SqlText.of("TRUE"), node.columns)
            case plan.Aggregate():
                return self._groups(node)
            case plan.OneRow():
                several = f"assert_true({node.count} <= 1, 'more than one row')"
                value = f"if({several} IS NULL, {node.value.id}, NULL) AS {node.value.id}"
                keys = [one.id for one in node.columns if one.id != node.value.id]
                order = ", ".join(one.id for one in node.columns)
                inner = SqlText.of(f"SELECT {', '.join([*keys, value])} FROM (", self.of(node.input), ")")
                return SqlText.of(f"SELECT {order} FROM (", inner, ")")
            case plan.Pieces():
                return self._pieces(node)
            case plan.Over():
                calls = [SqlText.of(one.text, f" AS {column.id}") for column, _, one in node.calls]
                listed = SqlText.join(", ", [SqlText.of(f"{ROWS}.*"), *calls])
                return self._over(node.input, node.scope.select(listed))
            case plan.SessionWindows():
                return self._session(node)
            case plan.TimeWindows():
                found = self._windows(node, self.of(node.rows)) if self._windows is not None else None
                return self.of(node.spelled) if found is None else _renamed(found, node.columns)
            case plan.Distinct():
                return SqlText.of("SELECT DISTINCT * FROM (", self.of(node.input), ")")
            case plan.SetOperation():
                word = node.operator.upper() + (" ALL" if node.all else "")
                both = SqlText.of("(", self.of(node.left), f") {word} (", self.of(node.right), ")")
                return _renamed(both, node.columns)
            case plan.Sort():
                return self._sorted(node)
            case plan.Scan() | plan.StreamWindow() | plan.ClauseRelation():
                raise AssertionError("a stream, or a clause over one, has no rows at one instant")
        assert_never(node)

    def _over(self, node: plan.Node, text: SqlText) -> SqlText:
        """A text over the rows of a node."""
        return _put(text, SqlText.of("(", self.of(node), ")"))

    # -- several relations ---------------------------------------------------------------------------

    def _join(self, node: plan.Join) -> SqlText:
        on = _equal(node.keys)
        if not node.conditions:
            return self._joined(node.left, node.right, _JOINS[node.kind], on, node.columns)
        pairs = self._pairs(node.left, node.right, on, node.scope, node.conditions)
        if node.kind == "inner":
            return pairs
        if node.kind in ("semi", "anti"):
            return self._with_partner(node.left, pairs, _JOINS[node.kind])
        parts = [pairs]
        for side, kinds in ((node.left, ("left", "full")), (node.right, ("right", "full"))):
            if node.kind in kinds:
                own = {column.id for column in side.columns}
                listed = ", ".join(
                    f"{_LEFT}.{one.id}" if one.id in own else f"NULL AS {one.id}" for one in node.columns
                )
                alone = self._with_partner(side, pairs, _JOINS["anti"])
                parts.append(SqlText.of(f"SELECT {listed} FROM (", alone, f") AS {_LEFT}"))
        return SqlText.join(" UNION ALL ", [SqlText.of("(", part, ")") for part in parts])

    def _mark(self, node: plan.Mark) -> SqlText:
        texts = []
        for unknown in ((), node.unknown):
            on = _equal(node.keys, unknown)
            partners = SqlText.of("(", self.of(node.right), f") AS {_RIGHT} WHERE ", on)
            if node.conditions:
                pairs = self._pairs(node.left, node.right, on, node.scope, node.conditions)
                partners = SqlText.of("(", pairs, f") AS {_PAIRS} WHERE {_same(node.left)}")
            texts.append(SqlText.of("EXISTS (SELECT 1 FROM ", partners, ")"))
        certain, possible = texts
        outcome = SqlText.of("CASE WHEN ", certain, " THEN TRUE WHEN NOT ", possible, " THEN FALSE END")
        column = SqlText.of(outcome if node.unknown else certain, f" AS {node.column.id}")
        return SqlText.of(f"SELECT {_LEFT}.*, ", column, " FROM (", self.of(node.left), f") AS {_LEFT}")

    def _joined(
        self, left: plan.Node, right: plan.Node, words: str, on: SqlText, columns: Sequence[Column]
    ) -> SqlText:
        return SqlText.of(
            f"SELECT {', '.join(column.id for column in columns)} FROM (",
            self.of(left),
            f") AS {_LEFT} {words} (",
            self.of(right),
            f") AS {_RIGHT} ON ",
            on,
        )

    def _pairs(
        self, left: plan.Node, right: plan.Node, on: SqlText, scope: Scope, conditions: Sequence[Expression]
    ) -> SqlText:
        """The pairs of rows that satisfy conditions."""
        pairs = self._joined(left, right, "JOIN", on, (*left.columns, *right.columns))
        if not conditions:
            return pairs
        text = scope.select(SqlText.of(f"{ROWS}.*"), [one.text for one in conditions])
        return _put(text, SqlText.of("(", pairs, ")"))

    def _with_partner(self, side: plan.Node, pairs: SqlText, words: str) -> SqlText:
        """The rows of a side that are in a pair, or in none."""
        return SqlText.of(
            f"SELECT {_LEFT}.* FROM (", self.of(side), f") AS {_LEFT} {words} (", pairs, f") AS {_PAIRS} ON ",
            _same(side),
        )  # fmt: skip

    # -- several rows --------------------------------------------------------------------------------

    def _groups(self, node: plan.Aggregate) -> SqlText:
        inside = node.input
        texts = {column.id: one.text for column, one in inside.outputs}
        own = {column.id for column in inside.input.columns}
        computed = [source for _, source in node.keys if source not in own]
        keys = [SqlText.of(", (", texts[source], f") AS {source}") for source in computed]
        rows = self._over(inside.input, inside.scope.select(SqlText.of(f"{ROWS}.*", *keys)))
        listed = [SqlText.of(f"{ROWS}.{source} AS {column.id}") for column, source in node.keys]
        listed += [SqlText.of(one.call.text, f" AS {one.column.id}") for one in node.calls]
        text = inside.scope.select(SqlText.join(", ", listed or [SqlText.of(f"count(1) AS {_ONE}")]))
        by = ", ".join(f"{ROWS}.{source}" for _, source in node.keys)
        return SqlText.of(_put(text, SqlText.of("(", rows, ")")), f" GROUP BY {by}" if by else "")

    def _pieces(self, node: plan.Pieces) -> SqlText:
        if node.empty is not None and node.input is not None:
            return _renamed(self._over(node.input, node.empty), node.columns)
        ids = [column.id for column in node.columns]
        at = f"0L AS {ENTER}, 1L AS {LEAVE}"
        rows = SqlText.of(f"(SELECT {at})")
        if node.input is not None:
            rows = SqlText.of(f"(SELECT *, {at} FROM (", self.of(node.input), "))")
        text = _put(node.text, rows)
        for key, one in node.beside:
            text = _put(text, SqlText.of(f"(SELECT *, {at} FROM (", self.of(one), "))"), key)
        return SqlText.of(
            f"SELECT {', '.join(ids)} FROM (", text, f") AS {_LEFT}({', '.join([*ids, ENTER, LEAVE])})"
        )

    def _session(self, node: plan.SessionWindows) -> SqlText:
        """Rows with the begin and end of their session."""
        found = self._windows(node, self.of(node.input)) if self._windows is not None else None
        if found is not None:
            return _renamed(found, node.columns)
        rows = SqlText.of(f"(SELECT *, struct(*) AS {AT} FROM (", self.of(node.input), "))")
        bounds = [column.id for column in node.bounds]
        own = ", ".join(f"{_LEFT}.{AT}.{column.id}" for column in node.input.columns)
        return SqlText.of(
            f"SELECT {own}, {', '.join(bounds)} FROM (",
            _put(node.text, rows),
            f") AS {_LEFT}({', '.join([*bounds, AT])})",
        )

    def _sorted(self, node: plan.Sort) -> SqlText:
        if node.partition:
            by = ", ".join(node.partition)
            order = f"ORDER BY {', '.join(map(_ordered, node.keys)) or '1'}"
            number = f"row_number() OVER (PARTITION BY {by} {order}) AS {_NUMBER}"
            last = "TRUE" if node.limit is None else f"{_NUMBER} <= {node.offset + node.limit}"
            return SqlText.of(
                f"SELECT * EXCEPT ({_NUMBER}) FROM (SELECT *, {number} FROM (", self.of(node.input),
                f")) WHERE {_NUMBER} > {node.offset} AND {last}",
            )  # fmt: skip
        order = f" ORDER BY {', '.join(map(_ordered, node.keys))}" if node.keys else ""
        limit = "" if node.limit is None else f" LIMIT {node.limit}"
        offset = f" OFFSET {node.offset}" if node.offset else ""
        return SqlText.of("SELECT * FROM (", self.of(node.input), f"){order}{limit}{offset}")


def _ordered(key: SortKey) -> str:
    nulls = "FIRST" if key.nulls_first else "LAST"
    return f"{key.column} {'DESC' if key.descending else 'ASC'} NULLS {nulls}"


def _texts(node: plan.Filter) -> list[SqlText]:
    return [one.text for one in node.conditions]


def _equal(keys: Sequence[tuple[str, str]], unknown: Sequence[tuple[str, str]] = ()) -> SqlText:
    """Whether all keys are equal; NULL is equal to all values of unknown keys."""
    texts = [
        f"coalesce({_LEFT}.{one} = {_RIGHT}.{other}, TRUE)"
        if (one, other) in unknown
        else f"{_LEFT}.{one} = {_RIGHT}.{other}"
        for one, other in keys
    ]
    return SqlText.of(" AND ".join(texts) or "TRUE")


def _same(side: plan.Node) -> str:
    """Whether a row is that of a pair."""
    return " AND ".join(f"{_LEFT}.{one.id} <=> {_PAIRS}.{one.id}" for one in side.columns) or "TRUE"


def _renamed(text: SqlText, columns: Sequence[Column]) -> SqlText:
    """A query whose columns are named by id."""
    return SqlText.of("SELECT * FROM (", text, f") AS {_LEFT}({', '.join(column.id for column in columns)})")


def _put(text: SqlText, rows: SqlText, key: str = ROWS) -> SqlText:
    """A text in which a query replaces the key of its rows."""
    return SqlText.of(*(rows if part == RelationText(key) else part for part in text.parts))
