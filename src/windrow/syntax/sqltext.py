"""SQL that Windrow generates, with the positions of the parts that the user wrote.

Generated queries are parts of the user's text, verbatim, with generated words between them and references to
other relations. If Spark reports an error at an offset of the generated text, the offset is mapped back
through the pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from windrow.errors import Span

__all__ = ["Piece", "RelationText", "SqlText", "quoted"]


@dataclass(frozen=True, slots=True)
class RelationText:
    """A place in generated SQL for the name of the relation with this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of text; `source` is the user's text that it was taken from, at `offset`, if any.

    If the text replaces other words of the user, `width` is the length of those.
    """

    text: str
    source: str | None = None
    offset: int = 0
    width: int | None = None


@dataclass(frozen=True)
class SqlText:
    """A sequence of pieces and relation references."""

    parts: tuple[Piece | RelationText, ...] = ()

    @staticmethod
    def of(*parts: str | Piece | RelationText | SqlText) -> SqlText:
        """Concatenate generated words (plain strings), pieces, references and whole texts."""
        flat: list[Piece | RelationText] = []
        for part in parts:
            if isinstance(part, SqlText):
                flat += part.parts
            else:
                flat.append(Piece(part) if isinstance(part, str) else part)
        return SqlText(tuple(flat))

    @staticmethod
    def join(separator: str, texts: Iterable[SqlText]) -> SqlText:
        """The texts with `separator` between them."""
        joined: list[SqlText | str] = []
        for text in texts:
            joined += [separator, text] if joined else [text]
        return SqlText.of(*joined)

    def render(self, names: dict[str, str] | None = None) -> str:
        """The text for Spark, with each relation's name from `names` (its key if absent)."""
        return "".join(
            part.text if isinstance(part, Piece) else (names or {}).get(part.key, part.key)
            for part in self.parts
        )

    def template(self) -> str:
        """The text with each relation as a field of a format string."""
        return "".join(
            part.text.replace("{", "{{").replace("}", "}}") if isinstance(part, Piece) else f"{{{part.key}}}"
            for part in self.parts
        )

    def relations(self) -> list[str]:
        """The keys of the relations that it refers to, in order, each once."""
        return list(dict.fromkeys(part.key for part in self.parts if isinstance(part, RelationText)))

    def locate(self, start: int, stop: int, names: dict[str, str] | None = None) -> tuple[str, Span] | None:
        """The user's text and span behind the rendered range ``[start, stop)``, if it has one.

        A range that starts in generated words is mapped to the first user's piece inside it, and those that
        follow it without generated words between them.

        >>> text = SqlText.of("(", Piece("__a", "SUM(v) + x", 0, 6), " ", Piece("+ x", "SUM(v) + x", 7), ")")
        >>> text.locate(1, 8)
        ('SUM(v) + x', Span(start=0, stop=10))
        """
        position = 0
        found: tuple[str, Span] | None = None
        for part in self.parts:
            text = part.text if isinstance(part, Piece) else (names or {}).get(part.key, part.key)
            begin, end = position, position + len(text)
            position = end
            if end <= start or not text.strip():
                continue
            if begin >= stop:
                break
            if not isinstance(part, Piece) or part.source is None:
                if found is not None:
                    break
                continue
            if part.width is not None:
                first, last = part.offset, part.offset + part.width
            else:
                first = part.offset + max(start - begin, 0)
                last = max(first, part.offset + min(stop, end) - begin)
            if found is None:
                found = part.source, Span(first, last)
            elif found[0] == part.source and first >= found[1].stop:
                found = part.source, Span(found[1].start, last)
            else:
                break
        return found

    def slice(self, start: int, stop: int) -> SqlText:
        """The range ``[start, stop)`` of the text rendered with the relations' keys as their names.

        >>> SqlText.of("SELECT * FROM ", RelationText("s"), " WHERE x").slice(7, 15).render({"s": "t"})
        '* FROM t'
        """
        found: list[Piece | RelationText] = []
        position = 0
        for part in self.parts:
            length = len(part.text if isinstance(part, Piece) else part.key)
            first, last = max(start - position, 0), min(stop - position, length)
            position += length
            if first >= last:
                continue
            if isinstance(part, Piece) and part.width is None:
                found.append(Piece(part.text[first:last], part.source, part.offset + first))
            else:
                found.append(part)
        return SqlText(tuple(found))

    def with_words(self, source: str, instead: Mapping[Span, str]) -> SqlText:
        """The text with generated words in place of parts of the user's text `source`.

        They also replace other words for the same parts.

        >>> text = SqlText.of("SELECT ", Piece("v > t.x", "… v > t.x", 2))
        >>> text.with_words("… v > t.x", {Span(6, 9): "c"}).render()
        'SELECT v > c'
        """
        parts: list[Piece | RelationText] = []
        for part in self.parts:
            if isinstance(part, RelationText) or part.source != source:
                parts.append(part)
                continue
            if part.width is not None:
                word = instead.get(Span(part.offset, part.offset + part.width), part.text)
                parts.append(Piece(word, source, part.offset, part.width))
                continue
            at, end = part.offset, part.offset + len(part.text)
            for span in sorted(instead, key=lambda span: span.start):
                if at <= span.start and span.stop <= end:
                    parts.append(Piece(part.text[at - part.offset : span.start - part.offset], source, at))
                    parts.append(Piece(instead[span], source, span.start, span.stop - span.start))
                    at = span.stop
            parts.append(Piece(part.text[at - part.offset :], source, at))
        return SqlText(tuple(part for part in parts if isinstance(part, RelationText) or part.text))

    def written(self, start: int, stop: int) -> tuple[str, Span] | None:
        """The user's text and span from the start of a rendered range to its end, including anything
        between.
        """
        first, last = self.locate(start, stop), self.locate_before(stop)
        if first is None or last is None or last[0] != first[0]:
            return first
        return first[0], Span(first[1].start, max(first[1].stop, last[1].stop))

    def locate_before(self, offset: int, names: dict[str, str] | None = None) -> tuple[str, Span] | None:
        """The last character that the user wrote before an offset of the rendered text."""
        position, found = 0, None
        for part in self.parts:
            text = part.text if isinstance(part, Piece) else (names or {}).get(part.key, part.key)
            if position >= offset:
                break
            if isinstance(part, Piece) and part.source is not None and text.strip():
                length = part.width if part.width is not None else len(text.rstrip())
                last = part.offset + min(length, offset - position)
                found = part.source, Span(max(last - 1, part.offset), last)
            position += len(text)
        return found


def quoted(name: str) -> str:
    """The name in backquotes."""
    return "`" + name.replace("`", "``") + "`"
