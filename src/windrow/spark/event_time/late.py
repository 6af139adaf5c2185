"""Leaves rows out that are late for their groups: conditions that are put into the text of a query.

What is late is said twice: in the text, of the groups of a row or of the pairs of a join, which leaves it out
of those that were complete; and of each row of a stream by its rowtime alone, for the account. Whatever the
text leaves out is of a row that the account has as late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from windrow.algebra.time_windows import TimeWindow
from windrow.spark.event_time.columns import event_of, is_star, seen
from windrow.spark.event_time.edits import Edits
from windrow.spark.event_time.facts import HIDDEN, EventColumn, Judging, Sides, watermark_at
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams import alias_after
from windrow.syntax.tokens import TokenList

__all__ = ["Late", "covers"]


@dataclass(frozen=True)
class Late:
    """The conditions of one text; what they read of watermarks are columns of the streams in it.

    Attributes
    ----------
    judgings
        The same of each row of a stream by its rowtime.
    """

    tokens: TokenList
    edits: Edits
    judgings: list[Judging] = field(default_factory=list)

    def names_columns(self, select: Select) -> bool:
        """Whether it is said which columns there are, but for stars for all of a relation."""
        several = len(select.source) > 1
        for start, stop in select.items:
            if self.tokens.is_symbol(start, "*"):
                if stop - start > 1 or several:
                    return False
                continue
            within = [at for at in range(start, stop) if is_star(self.tokens, at)]
            if within and (within != [stop - 1] or stop - start != 3):
                return False
        return all(item.using == () for item in select.source)

    def leave_copies_out(self, select: Select, sides: Sides) -> None:
        """As `leave_out`, of DISTINCT, of which equal rows are a group.

        Watermarks are left out of what stars stand for.
        """
        telling: list[tuple[SqlText, EventColumn]] = []
        for item in select.items:
            covered = [(side, facts) for side, facts in sides if covers(self.tokens, item, side)]
            for side, facts in covered:
                alias = f"{quoted(side.alias)}." if side.alias else ""
                events = {name: each for name, each in facts.events.items() if not name.startswith(HIDDEN)}
                telling += [(SqlText.of(f"{alias}{quoted(name)}"), each) for name, each in events.items()]
                if facts.watermarks:
                    self.edits.put(item[1], f"EXCEPT ({', '.join(map(quoted, facts.watermarks))})")
            key = without_alias(self.tokens, item)
            event = None if covered else event_of(self.tokens, key, sides)
            telling += [] if event is None else [(self.edits.piece(*key), event)]
        self.leave_out(select, sides, telling)

    def hide_watermarks(self, select: Select, sides: Sides) -> None:
        """Leave watermarks out of what stars stand for within the expressions of groups."""
        for start, stop in (*select.items, *([] if select.having is None else [select.having])):
            for at in (at for at in range(start, stop) if is_star(self.tokens, at)):
                of = self.tokens[at - 2].name.lower() if self.tokens.is_symbol(at - 1, ".") else None
                seen = [facts for side, facts in sides if of is None or of == (side.alias or "").lower()]
                names = [name for facts in seen for name in facts.watermarks]
                if names:
                    self.edits.put(at + 1, f"EXCEPT ({', '.join(map(quoted, names))})")

    def leave_out(self, select: Select, sides: Sides, keys: Sequence[tuple[SqlText, EventColumn]]) -> None:
        """Put it into WHERE that a row that comes when its group is complete is late, and does not count.

        Groups of what has been grouped change only before that is complete.
        """
        telling = [(key, event) for key, event in keys if event.tells_late]
        marked = {name for _, facts in seen(sides) for name in facts.watermarks}
        origins = {at for _, event in telling for at in event.origins if watermark_at(at) in marked}
        watermarks = [watermark_at(at) for at in sorted(origins)]
        if not watermarks or not telling or not all(facts.raw for _, facts in sides if facts.streams):
            return
        for _, event in telling:
            judged = (Judging(event.mapped, event.mapped, at) for at in sorted(event.origins & origins))
            self.judgings.extend(judged)
        least = watermarks[0] if len(watermarks) == 1 else f"greatest({', '.join(watermarks)})"
        by_origin: dict[int, list[SqlText]] = {}
        for key, event in telling:
            mapped = event.mapped.replace("{t}", least)
            text = SqlText.of("(", key, f") < {mapped}")
            by_origin.setdefault(event.origin, []).append(text)
        late = SqlText.join(
            " AND ", [SqlText.of("(", SqlText.join(" OR ", each), ")") for each in by_origin.values()]
        )
        condition = SqlText.of("NOT coalesce(", late, ", FALSE)")
        last, _ = sides[-1]
        if last.join in ("left", "right", "full") and last.on is not None:  # a late row is no partner either
            self.edits.put(last.on[0], "(")
            self.edits.put(last.on[1], ") AND ", condition)
        if select.where is not None:
            self.edits.put(select.where[0], "(")
            self.edits.put(select.where[1], ") AND ", condition)
        else:
            self.edits.put(self._end_of_from(select), "WHERE ", condition)

    def leave_out_of_sessions(
        self, data: Range, is_query: bool, window: TimeWindow, event: EventColumn, watermarks: Sequence[str]
    ) -> None:
        """Leave out of a session's table the rows that alone would make a session that is complete."""
        clock = window.clock
        origins = [at for at in sorted(event.origins) if watermark_at(at) in watermarks]
        marks = [watermark_at(at) for at in origins]
        if not marks:
            return
        least = marks[0] if len(marks) == 1 else f"greatest({', '.join(marks)})"
        time, mapped = (
            f"({clock.of_column(text, window.time_type, clock.unit)})"
            for text in (quoted(window.time), event.mapped)
        )
        after = f" + {window.lengths['gap']}L"
        self.judgings.extend(Judging(mapped + after, mapped, at) for at in origins)
        late = f"{time}{after} < {mapped.replace('{t}', least)}"
        self.edits.put(data[0], "(SELECT * FROM (" if is_query else "(SELECT * FROM")
        self.edits.put(data[1], ") " if is_query else "", f"WHERE NOT coalesce({late}, FALSE))")

    def _end_of_from(self, select: Select) -> int:
        """The token after FROM and what belongs to it."""
        if select.group_by is not None:
            return select.group_by[0] - 2
        item = select.source[-1]
        if item.on is not None:
            return item.on[1]
        alias = alias_after(self.tokens, item.source[1], len(self.tokens))
        at = item.source[1] if alias is None else alias + 1
        return self.tokens.partner[at] + 1 if item.columns else at


def covers(tokens: TokenList, item: Range, side: FromItem) -> bool:
    """Whether an item of SELECT is a star for a relation."""
    start, stop = item
    if tokens.is_symbol(start, "*"):
        return True
    of_one = tokens.is_symbol(stop - 1, "*") and stop - start == 3 and tokens.is_symbol(start + 1, ".")
    return of_one and tokens[start].name.lower() == (side.alias or "").lower()
