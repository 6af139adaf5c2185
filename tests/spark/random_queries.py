"""Queries that are composed at random, over the streams s and t and the table names.

Every query has one answer: what is ordered is ordered by all columns, what is divided is divided by a
constant, and numbers stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONTINUOUS", "EMITTED", "Sources", "written"]

WINDOWS = [
    "[NOW]",
    "[RANGE UNBOUNDED]",
    "[RANGE 2]",
    "[RANGE 5 SLIDE 3]",
    "[RANGE 2 SLIDE 5]",
    "[ROWS 1]",
    "[ROWS 3]",
    "[ROWS 3 SLIDE 2]",
    "[PARTITION BY k ROWS 1]",
    "[PARTITION BY k ROWS 2 RANGE 3]",
]
COMPARISONS = ["=", "=", "=", "<", ">=", "<>", "<=>"]
OUTER = ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
AGGREGATES = [
    "COUNT(*)", "SUM({})", "MAX({})", "MIN({})", "COUNT({})", "COUNT(DISTINCT {})", "SUM({}) + 1",
    "COUNT(*) FILTER (WHERE {} > 0)", "CAST(AVG({}) * 6 AS BIGINT)", "BIT_XOR({})", "MEDIAN({}) > 1",
]  # fmt: skip
NAMES = ["k", "v", "ts", "a", "b"]

NUMBER, TIME, TEXT = "number", "time", "text"
"""What columns hold; `TIME` is a number that is event time."""

Columns = tuple[tuple[str, str], ...]
COLUMNS: Columns = (("ts", TIME), ("k", NUMBER), ("v", NUMBER))
"""The columns of the streams, by which queries call them."""


@dataclass(frozen=True)
class Sources:
    """What is there to be read: streams with windows in brackets, or streams as they came."""

    is_bracketed: bool


CONTINUOUS = Sources(is_bracketed=True)
EMITTED = Sources(is_bracketed=False)


@dataclass(frozen=True)
class Query:
    """A query and its columns, of which several may have one name."""

    text: str
    columns: Columns

    @property
    def named(self) -> Columns:
        """The columns that their names tell apart."""
        names = [name for name, _ in self.columns]
        return tuple(each for each in self.columns if names.count(each[0]) == 1)


@dataclass
class _Writer:
    """Writes one query, with `below` as what chooses: a number below another.

    `outer` are the columns of the query around a subquery.
    """

    below: Callable[[int], int]
    sources: Sources
    named: list[tuple[str, Query]] = field(default_factory=list)
    count: int = 0

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def often(self, times: int) -> bool:
        """True once in so many times."""
        return self.below(times) == times - 1

    def mixed(self, names: Sequence[str]) -> list[str]:
        """The names in any order."""
        left = [*names]
        return [left.pop(self.below(len(left))) for _ in names]

    def fresh(self) -> str:
        self.count += 1
        return f"q{self.count}"

    # -- FROM ----------------------------------------------------------------------------------------

    def leaf(self) -> str:
        """A stream, with a window in brackets if it must have one."""
        stream = self.one(["s", "t"])
        return f"{stream} {self.one(WINDOWS)}" if self.sources.is_bracketed else stream

    def relation(self, depth: int) -> tuple[str, Columns]:
        """An element of FROM and the columns that it gives, by their full names."""
        alias = self.fresh()
        kinds = ["stream"] * 3 + ["table"]
        kinds += (["query"] * 3 + ["windows"] * 2 + ["named"]) if depth > 0 else []
        kinds += ["stream of a query"] if depth > 0 and self.sources.is_bracketed else []
        kind = self.one(kinds)
        if kind == "named" and not self.named:
            kind = "query"
        if kind == "stream":
            return self.aliased(self.leaf(), COLUMNS, alias)
        if kind == "table":
            return self.aliased("names", (("k", NUMBER), ("w", NUMBER), ("x", TEXT)), alias)
        if kind == "windows":
            return self.windows(depth, alias)
        if kind == "named":
            name, query = self.one(self.named)
            return self.aliased(name, query.named, alias)
        query = self.query(depth - 1)
        if kind == "stream of a query":
            to_stream = self.one(["ISTREAM", "DSTREAM", "RSTREAM"])
            return self.aliased(f"({to_stream}({query.text})) {self.one(WINDOWS[:8])}", query.named, alias)
        return self.aliased(f"({query.text})", query.named, alias)

    def aliased(self, text: str, columns: Columns, alias: str) -> tuple[str, Columns]:
        return f"{text} AS {alias}", tuple((f"{alias}.{name}", kind) for name, kind in columns)

    def windows(self, depth: int, alias: str) -> tuple[str, Columns]:
        """TUMBLE, HOP or SESSION."""
        inner = Query(f"SELECT * FROM {self.leaf()}", COLUMNS)
        if self.often(3):
            inner = self.query(depth - 1)
        times = [name for name, kind in inner.named if kind == TIME]
        unique = len(inner.named) == len(inner.columns) and not {"wstart", "wend"} & {*dict(inner.named)}
        if not times or not unique:
            inner, times = Query(f"SELECT * FROM {self.leaf()}", COLUMNS), ["ts"]
        is_plain = (
            inner.columns == COLUMNS and not self.sources.is_bracketed and inner.text[-2:] in (" s", " t")
        )
        table = inner.text[-1] if is_plain else f"({inner.text})"
        time = f"DESCRIPTOR({self.one(times)})"
        kind = self.one(["TUMBLE", "TUMBLE", "HOP", "SESSION", "SESSION BY"])
        call = {
            "TUMBLE": f"TUMBLE(TABLE {table}, {time}, 3)",
            "HOP": f"HOP(TABLE {table}, {time}, 2, 4)",
            "SESSION": f"SESSION(TABLE {table}, {time}, 1)",
            "SESSION BY": f"SESSION(TABLE {table} PARTITION BY {inner.columns[-1][0]}, {time}, 2)",
        }[kind]
        return self.aliased(call, (*inner.columns, ("wstart", TIME), ("wend", TIME)), alias)

    def sourced(self, depth: int) -> tuple[str, Columns, list[str]]:
        """FROM: its text, the columns that may be named, and the aliases of which `*` may be taken."""
        text, columns = self.relation(depth)
        stars = [columns[0][0].split(".")[0]] if columns else []
        for _ in range(self.one([0, 0, 0, 1, 1, 2])):
            other, own = self.relation(depth - 1)
            kind = self.one(
                [
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "SEMI",
                    "ANTI",
                    ",",
                    "USING",
                    "LATERAL",
                ]
            )
            if kind == ",":
                text += f", {other}"
            elif kind == "LATERAL":
                alias = self.fresh()
                inner = self.subquery(depth - 1, columns)
                own = tuple((f"{alias}.{name}", kind) for name, kind in inner.named)
                text += f"{self.one([', ', ' JOIN ', ' LEFT JOIN '])}LATERAL ({inner.text}) AS {alias}"
                text += " ON true" if "JOIN LATERAL" in text[-len(inner.text) - 40 :] else ""
            elif kind == "USING" and (shared := self.shared(columns, own)):
                name = self.one(shared)
                text += f" {self.one(['JOIN', *OUTER])} {other} USING ({name})"
                kept = [each for each in (*columns, *own) if each[0].split(".")[-1] != name]
                text, columns, stars = text, (*kept, (name, NUMBER)), []
                continue
            elif kind in ("SEMI", "ANTI"):
                text += f" LEFT {kind} JOIN {other} ON {self.pairing(columns, own, depth)}"
                continue
            else:
                kind = "JOIN" if kind == "USING" else kind
                text += f" {kind} {other} ON {self.pairing(columns, own, depth)}"
            columns = (*columns, *own)
            stars += [own[0][0].split(".")[0]] if own else []
        return text, columns, stars

    def shared(self, columns: Columns, own: Columns) -> list[str]:
        """The names that both sides have once."""
        left = [name.split(".")[-1] for name, kind in columns if kind != TEXT]
        right = [name.split(".")[-1] for name, kind in own if kind != TEXT]
        return [name for name in left if left.count(name) == 1 and right.count(name) == 1]

    def pairing(self, columns: Columns, own: Columns, depth: int) -> str:
        """The condition of a join."""
        left = [each for each in columns if each[1] != TEXT]
        right = [each for each in own if each[1] != TEXT]
        if not left or not right:
            return "true"
        parts = []
        for _ in range(self.one([1, 1, 2])):
            times = [[name for name, kind in side if kind == TIME] for side in (left, right)]
            if all(times) and self.often(2):
                parts.append(f"{self.one(times[0])} = {self.one(times[1])}")
                continue
            one, other = self.one(left)[0], self.one(right)[0]
            parts.append(
                self.one(
                    [
                        f"{one} {self.one(COMPARISONS)} {other}",
                        f"{one} = {other}",
                        f"{other} BETWEEN {one} AND {one} + 2",
                        f"{one} + 1 = {other} OR {one} IS NULL",
                    ]
                )
            )
        if self.often(5):
            parts.append(self.condition((*left, *right), depth - 1))
        return " AND ".join(f"({part})" for part in parts)

    # -- expressions ---------------------------------------------------------------------------------

    def number(self, columns: Columns, depth: int) -> str:
        """A number computed of a row."""
        known = [name for name, kind in columns if kind != TEXT]
        if not known:
            return self.one(["1", "NULL", "2"])
        one, other = self.one(known), self.one(known)
        found = self.one(
            [
                one,
                one,
                f"{one} + 1",
                f"{one} % 2",
                f"COALESCE({one}, {other})",
                f"{one} - {other}",
                f"CASE WHEN {one} > 1 THEN {other} END",
                f"NULLIF({one}, 1)",
                f"GREATEST({one}, {other})",
                "?",
            ]
        )
        if found != "?":
            return str(found)
        return self.scalar(columns, depth) if depth > 0 else f"-{one}"

    def scalar(self, columns: Columns, depth: int) -> str:
        """A subquery for one value."""
        text, own, _ = self.sourced(0)
        where = self.where(own, depth - 1, columns if self.often(2) else ())
        value = self.number(own, 0)
        if self.often(5):
            return f"({self.block(f'{value} AS c', text, where)} ORDER BY c LIMIT 1)"
        call = self.one(
            [f"MAX({value})", "COUNT(*)", f"SUM({value})", f"COUNT(DISTINCT {value})", f"MIN({value}) + 1"]
        )
        having = self.one(["", "", "", " HAVING COUNT(*) > 1"])
        return f"({self.block(call, text, where + having)})"

    def block(self, listed: str, text: str, rest: str) -> str:
        """A SELECT, or FROM with SELECT behind it."""
        if self.often(4):
            return f"FROM {text} SELECT {listed}{rest}"
        return f"SELECT {listed} FROM {text}{rest}"

    def condition(self, columns: Columns, depth: int) -> str:
        """Something that is true of a row, false, or neither."""
        known = [name for name, kind in columns if kind != TEXT]
        if not known:
            return "1 = 1"
        one, other = self.one(known), self.one(known)
        simple = [
            f"{one} > 1",
            f"{one} IS NULL",
            f"{one} <= {other}",
            f"{one} = 1 OR {other} IS NOT NULL",
            f"NOT ({one} < 2 AND {other} > 0)",
            f"{one} IN (0, 1, NULL)",
        ]
        if depth <= 0 or self.often(2):
            return str(self.one(simple))
        kind = self.one(["EXISTS", "NOT EXISTS", "IN", "NOT IN", "scalar", "or", "ANY"])
        if kind == "or":
            return f"({self.condition(columns, depth - 1)} OR {self.condition(columns, depth - 1)})"
        if kind == "scalar":
            return f"{one} {self.one(COMPARISONS)} {self.scalar(columns, depth)}"
        outer = columns if self.often(2) else ()
        if kind in ("EXISTS", "NOT EXISTS"):
            return f"{kind} ({self.subquery(depth - 1, outer).text})"
        text, own, _ = self.sourced(0)
        inner = self.block(self.number(own, 0), text, self.where(own, depth - 1, outer))
        value = self.number(columns, 0)
        if kind == "ANY":
            return f"{value} = ANY ({inner})"
        return f"{value} {kind} ({inner})"

    def subquery(self, depth: int, outer: Columns) -> Query:
        """A block that may read the columns of the query around it."""
        text, own, _ = self.sourced(max(depth - 1, 0))
        where = self.where(own, depth - 1, outer)
        return self.selected(text, own, [], where, depth - 1)

    def where(self, columns: Columns, depth: int, outer: Columns = ()) -> str:
        """WHERE, or nothing."""
        known = [name for name, kind in columns if kind != TEXT]
        around = [name for name, kind in outer if kind != TEXT]
        if known and around:
            one, other = self.one(known), self.one(around)
            text = f"{one} {self.one(COMPARISONS)} {other}"
            return f" WHERE {text}" + (f" AND {self.condition(columns, depth)}" if self.often(3) else "")
        return f" WHERE {self.condition(columns, depth)}" if self.often(2) else ""

    # -- blocks --------------------------------------------------------------------------------------

    def query(self, depth: int) -> Query:
        """A query of this depth."""
        kind = self.one(["block"] * 7 + ["set", "set", "first", "named"]) if depth > 0 else "block"
        if kind == "named":
            name = self.fresh()
            inner = self.query(depth - 1)
            self.named.append((name, inner))
            query = self.query(depth - 1)
            self.named.pop()
            return Query(f"WITH {name} AS ({inner.text}) {query.text}", query.columns)
        if kind == "set":
            return self.combined(depth)
        if kind == "first":
            return self.first(self.query(depth - 1))
        text, columns, stars = self.sourced(depth)
        return self.selected(text, columns, stars, self.where(columns, depth), depth)

    def first(self, query: Query) -> Query:
        """The first rows of a query."""
        if len(query.named) < len(query.columns) or not query.columns:
            return query
        names = self.mixed([name for name, _ in query.columns])
        order = ", ".join(f"{name}{self.one(['', ' DESC', ' NULLS LAST'])}" for name in names)
        text = f"SELECT * FROM ({query.text}) ORDER BY {order} LIMIT {self.one([1, 2, 3])}"
        return Query(text + self.one(["", "", " OFFSET 1"]), query.columns)

    def combined(self, depth: int) -> Query:
        """Two queries and a set operator."""
        operator = self.one(
            ["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
        )
        sides = [self.query(depth - 1) for _ in range(2)]
        width = min(len(side.columns) for side in sides)
        kinds = list(zip(*(side.columns for side in sides), strict=False))
        if len({len(side.columns) for side in sides}) > 1 or any(
            (a[1] == TEXT) != (b[1] == TEXT) for a, b in kinds
        ):
            chosen = []
            for side in sides:
                known = [name for name, kind in side.named if kind != TEXT]
                listed = [self.one(known) if known else "1" for _ in range(min(width, 2) or 1)]
                listed = [f"{name} AS {called}" for name, called in zip(listed, "ab", strict=False)]
                chosen.append(Query(f"SELECT {', '.join(listed)} FROM ({side.text})", ()))
            columns: Columns = tuple((name, NUMBER) for name in "ab"[: min(width, 2) or 1])
            sides = chosen
        else:
            columns = tuple(
                (a[0], TEXT if a[1] == TEXT else TIME if a[1] == b[1] == TIME else NUMBER) for a, b in kinds
            )
        return Query(f"({sides[0].text}) {operator} ({sides[1].text})", columns)

    def selected(self, text: str, columns: Columns, stars: list[str], where: str, depth: int) -> Query:
        """A block over FROM and WHERE."""
        kind = self.one(["rows"] * 4 + ["groups"] * 4 + ["distinct", "over", "over"])
        if kind == "groups":
            return self.grouped(text, columns, where, depth)
        if kind == "over":
            return self.framed(text, columns, where, depth)
        listed, own = self.listed(columns, stars, depth)
        return Query(f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{listed} FROM {text}{where}", own)

    def listed(self, columns: Columns, stars: list[str], depth: int) -> tuple[str, Columns]:
        """The list of SELECT, without groups."""
        if stars and self.often(3):
            if self.often(2):
                star = self.one(stars)
                own = tuple((n.split(".")[1], kind) for n, kind in columns if n.startswith(f"{star}."))
                return f"{star}.*", own
            names = [name.split(".")[-1] for name, _ in columns]
            own = tuple(zip(names, (kind for _, kind in columns), strict=True))
            return "*", own
        items = []
        for _ in range(self.one([1, 2, 2, 3])):
            name = self.one(NAMES)
            times = [each for each, kind in columns if kind == TIME]
            texts = [each for each, kind in columns if kind == TEXT]
            if times and self.often(3):
                items.append((self.one(times), name, TIME))
            elif texts and self.often(4):
                items.append((self.one([self.one(texts), f"UPPER({self.one(texts)}) || '.'"]), name, TEXT))
            else:
                items.append((self.number(columns, depth - 1), name, NUMBER))
        return ", ".join(f"{value} AS {name}" for value, name, _ in items), tuple(
            (name, kind) for _, name, kind in items
        )

    def grouped(self, text: str, columns: Columns, where: str, depth: int) -> Query:
        """A block with groups."""
        times = [name for name, kind in columns if kind == TIME]
        keys: list[tuple[str, str]] = []
        for _ in range(self.one([0, 1, 1, 2])):
            is_time = times and self.often(2)
            key = (self.one(times), TIME) if is_time else (self.number(columns, 0), NUMBER)
            if depth > 0 and self.often(5):
                condition = f"CAST({self.condition(columns, depth)} AS INT)"
                key = (self.one([self.scalar(columns, depth - 1), condition]), NUMBER)
            keys += [key] if key not in keys and key[0] != "NULL" and not key[0].isdigit() else []
        calls = []
        for _ in range(self.one([1, 1, 2]) if keys else 1):
            value = self.number(columns, 0)
            call = self.one(AGGREGATES).format(value)
            calls.append((f"CAST({call} AS INT)" if call.startswith("MEDIAN") else call, NUMBER))
        if keys and self.often(4):
            by_keys = [key for key, _ in keys if "SELECT" not in key]
            calls.append((f"RANK() OVER (ORDER BY {', '.join([calls[0][0], *by_keys])})", NUMBER))
        names = [f"{name}{number}" for number, name in enumerate("kkk"[: len(keys)] + "nnn"[: len(calls)])]
        items = [*keys, *calls]
        listed = ", ".join(f"{value} AS {name}" for (value, _), name in zip(items, names, strict=True))
        by = ""
        if keys:
            plain = ", ".join(key for key, _ in keys)
            numbers = ", ".join(str(number + 1) for number in range(len(keys)))
            has_ranks = "OVER" in listed
            forms = (
                [plain] * 4
                + [numbers]
                + ([] if has_ranks else ["ALL", f"ROLLUP ({plain})", f"CUBE ({plain})"])
            )
            if len(keys) == 2 and not has_ranks:
                first, second = (key for key, _ in keys)
                forms += [f"{first}, ROLLUP ({second})"] * 2
                forms += [f"GROUPING SETS (({second}, {first}), ({first}), ())", f"{plain} WITH CUBE"]
            form = self.one(forms)
            if form.startswith(("ROLLUP", "CUBE", "GROUPING SETS")) or form.endswith("CUBE"):
                items = [(value, NUMBER) for value, _ in items]
            elif "ROLLUP" in form:  # whose first key is in all sets
                items = [items[0], *((value, NUMBER) for value, _ in items[1:])]
            by = f" GROUP BY {form}"
        having = ""
        if self.often(3):
            having = f" HAVING {self.one(['COUNT(*) > 1', 'COUNT(*) <> 2', 'MAX(1) = 1'])}"
            if depth > 0 and self.often(2):
                having = f" HAVING COUNT(*) {self.one(['>=', '<', '='])} {self.scalar((), depth - 1)}"
        own = tuple((name, kind) for name, (_, kind) in zip(names, items, strict=True))
        return Query(f"SELECT {listed} FROM {text}{where}{by}{having}", own)

    def framed(self, text: str, columns: Columns, where: str, depth: int) -> Query:
        """A block with OVER, and QUALIFY perhaps."""
        known = [name for name, kind in columns if kind != TEXT]
        if not known:
            return Query(f"SELECT 1 AS a FROM {text}{where}", (("a", NUMBER),))
        partition = f"PARTITION BY {self.one(known)}" if self.often(2) else ""
        every = ", ".join(self.mixed([name for name, _ in columns]))
        some = f"{self.one(known)}{self.one(['', ' DESC'])}"
        value = self.number(columns, 0)
        call, over = self.one(
            [
                (f"SUM({value})", partition),
                ("COUNT(*)", f"{partition} ORDER BY {some}"),
                (f"MAX({value})", f"{partition} ORDER BY {every} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
                ("RANK()", f"{partition} ORDER BY {some}"),
                ("DENSE_RANK()", f"{partition} ORDER BY {some}"),
                ("ROW_NUMBER()", f"{partition} ORDER BY {every}"),
                (f"LAG({value})", f"{partition} ORDER BY {every}"),
                (f"LEAD({value}, 1, 0)", f"{partition} ORDER BY {every}"),
            ]
        )
        # rows that are equal in all columns of FROM may be told apart by nothing that is shown
        rank = f"{call} OVER ({over.strip()})"
        listed, own = self.listed(columns, [], 0)
        if self.often(3):
            condition = f"{self.one(['RANK()', 'DENSE_RANK()'])} OVER ({partition} ORDER BY {some})"
            if depth > 0 and self.often(2):
                outer = columns if self.often(2) else ()
                inner = self.where((("z.k", NUMBER),), 0, outer)
                values = self.block("z.k", f"{self.leaf()} AS z", inner)
                condition += f" {self.one(['IN', 'NOT IN', '= ANY'])} ({values})"
            else:
                condition += f" <= {self.scalar(columns, depth - 1) if depth > 0 else 2}"
            return Query(f"SELECT {listed} FROM {text}{where} QUALIFY {condition}", own)
        return Query(f"SELECT {listed}, {rank} AS r FROM {text}{where}", (*own, ("r", NUMBER)))


def written(below: Callable[[int], int], sources: Sources) -> str:
    """The text of a query of up to four levels, of which a function makes all choices."""
    writer = _Writer(below, sources)
    return writer.query(writer.one([0, 1, 1, 2, 2, 3])).text
