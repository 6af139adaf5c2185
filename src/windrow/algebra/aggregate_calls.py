"""Finds the aggregates over a window in the text of a SELECT, and the columns that the rest reads.

``AVG(w.val)`` after WINDOW BY w is computed for every window, inside the operator; in the text, a column
replaces it. A call around such an aggregate (``MAX(AVG(w.val))``) is Spark's own, over all windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

from windrow.algebra.names import AGGREGATE, IS_ROW, QUALIFIED
from windrow.algebra.scopes import is_of_subquery
from windrow.algebra.window_node import AggregateCall, CallOfSpark, Uses, Window, WindowFragment
from windrow.errors import Span
from windrow.kernels.aggregates import FUNCTIONS
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import Atoms, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import Token, TokenKind, TokenList, tokenize

__all__ = [
    "AGGREGATES",
    "Aggregates",
    "aggregate_over_windows",
    "aggregate_ranges",
    "calls_aggregate",
    "find_aggregates",
    "find_calls",
    "find_uses",
    "kernel_function",
    "own_call",
    "places_of_calls",
]

_KERNEL = {name: own for own, function in FUNCTIONS.items() for name in function.names}
"""Spark's names of aggregates that the kernel computes, with the kernel's names."""
_OF_SPARK = {
    "approx_count_distinct", "approx_percentile", "approx_top_k", "approx_top_k_accumulate",
    "approx_top_k_combine", "bitmap_and_agg", "bitmap_construct_agg",
    "bitmap_or_agg", "collect_set", "collect_union", "corr", "count_min_sketch", "covar_pop", "covar_samp",
    "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double",
    "kll_merge_agg_float", "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float",
    "kurtosis", "listagg", "max_by", "min_by", "percentile_approx", "percentile_cont", "percentile_disc",
    "product", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy", "schema_of_json_agg", "skewness", "string_agg",
    "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum",
    "tuple_intersection_agg_double", "tuple_intersection_agg_integer", "tuple_sketch_agg_double",
    "tuple_sketch_agg_integer", "tuple_union_agg_double", "tuple_union_agg_integer",
}  # fmt: skip
"""More aggregates of Spark's, which Spark computes unless the kernel has them."""
# an aggregate of the paper's spelling, ARRAY_AVG(w.val); array_agg itself is Spark's own
_ARRAY = {f"array_{name}": name for name in [*_KERNEL, *_OF_SPARK] if name != "array_agg"}
AGGREGATES = frozenset({*_KERNEL, *_OF_SPARK, *_ARRAY})
"""Names, in lower case, that are aggregates where they are called over a window."""


def kernel_function(name: str) -> str | None:
    """The kernel's name of an aggregate, empty if the kernel lacks it; None if `name` is not an aggregate.

    >>> kernel_function("mean"), kernel_function("listagg"), kernel_function("upper")
    ('avg', '', None)
    """
    return _KERNEL.get(name, "" if name in _OF_SPARK else None)


@dataclass(frozen=True)
class Aggregates:
    """The calls found, and their token ranges."""

    calls: tuple[AggregateCall, ...]
    at: dict[Range, AggregateCall]


def find_aggregates(
    tokens: TokenList,
    ranges: list[Range],
    window: str,
    others: list[str],
    piece: Callable[[Range], SqlText],
    qualified: Atoms,
    own: frozenset[str] = frozenset(),
    read_around: Callable[[Range], frozenset[str]] | None = None,
) -> Aggregates:
    """The aggregates over `window` in these ranges; the same text twice is one aggregate.

    `others` are the names of the other variables in scope; `piece` returns the text of a range for Spark;
    `qualified` are the fields that are read with a qualifier; `own` are the names of the user's aggregates.
    `read_around` returns the fields that replace columns of the outer query in a call.
    """
    found: dict[Range, AggregateCall] = {}
    by_text: dict[str, AggregateCall] = {}
    for start, stop in aggregate_ranges(tokens, ranges, window, own):
        # as written: literals differ by case, and every ? is a parameter of its own
        marks = [token.start for token in tokens.tokens[start:stop] if token.is_symbol("?")]
        folded = {tokens[start].text.lower(), window.lower()}
        words = [
            token.text.lower() if token.text.lower() in folded else token.text
            for token in tokens.tokens[start:stop]
        ]
        text = " ".join([*words, *map(str, marks)])
        if text not in by_text:
            call = _call(tokens, start, stop, f"{AGGREGATE}{len(by_text)}", piece, qualified)
            is_own = tokens[start].name.lower() in own
            read = [use.fields for use in find_uses(tokens, [(start, stop)], [window], [], qualified)]
            by_text[text] = replace(
                call,
                reads=None
                if None in read
                else frozenset().union(
                    *(fields or () for fields in read),
                    () if read_around is None else read_around((start, stop)),
                ),
                others=find_uses(tokens, [(start, stop)], others, [], qualified),
                own=own_call(tokens, start, piece, IS_ROW) if is_own else None,
            )
        found[start, stop] = by_text[text]
    return Aggregates(tuple(by_text.values()), found)


def own_call(tokens: TokenList, start: int, piece: Callable[[Range], SqlText], counts: str) -> CallOfSpark:
    """The call at `start` of an aggregate of the user's own, of rows for which `counts` is true."""
    close = tokens.partner[start + 1]
    is_distinct = tokens.word(start + 2) == "DISTINCT" and start + 3 < close
    arguments = (start + 2 + is_distinct, close)
    text = SqlText.of(piece((start, start + 1)), "(", _text_of(arguments, piece), ")")
    condition = SqlText.of(counts)
    if tokens.word(close + 1) == "FILTER" and tokens.is_symbol(close + 2, "("):
        condition = SqlText.of(counts, " AND (", piece((close + 4, tokens.partner[close + 2])), ")")
    return CallOfSpark(text, condition, piece(arguments) if is_distinct else None)


def aggregate_ranges(
    tokens: TokenList, ranges: list[Range], window: str, own: frozenset[str] = frozenset()
) -> list[Range]:
    """The ranges of aggregates over `window` in these ranges, including the user's `own`."""
    return _innermost([call for start, stop in ranges for call in _calls(tokens, start, stop, window, own)])


def find_calls(
    tokens: TokenList, ranges: list[Range], piece: Callable[[Range], SqlText]
) -> dict[Range, AggregateCall]:
    """The aggregates over groups in these ranges."""
    places = places_of_calls(tokens, ranges)
    return {
        call: _call(tokens, *call, f"{AGGREGATE}{number}", piece, {}) for number, call in enumerate(places)
    }


def places_of_calls(tokens: TokenList, ranges: list[Range]) -> list[Range]:
    """The ranges of aggregates over groups in these ranges, except those in subqueries or with OVER."""
    found = []
    for start, stop in ranges:
        last = start
        for call in _calls(tokens, start, stop, None):
            if call[0] >= last:  # otherwise it is in the one before
                last = call[1]
                found.append(call)
    return list(dict.fromkeys(found))


def find_uses(
    tokens: TokenList, ranges: list[Range], names: list[str], skip: list[Range], qualified: Atoms
) -> tuple[Uses, ...]:
    """Which of these variables the ranges read, and which of their fields; `skip` is left out.

    For `qualified` fields that are read with a qualifier, the variable has another name.
    """
    known = {name.lower(): name for name in names}
    fields: dict[str, set[str] | None] = {}
    ends = dict(sorted(skip))
    for start, stop in ranges:
        hidden = start
        for index in range(start, stop):
            hidden = max(hidden, ends.get(index, start))
            token = tokens[index]
            if (
                index < hidden
                or not token.is_name
                or token.name.lower() not in known
                or tokens.is_symbol(index - 1, ".")
                or tokens.is_symbol(index - 1, ":")
                or tokens.word(index - 1) == "AS"  # an alias, or a type
                or is_of_subquery(tokens, index, start)
            ):
                continue
            name = known[token.name.lower()]
            if index in qualified:
                of_relations = fields.setdefault(QUALIFIED + name, set())
                read = qualified[index]
                assert of_relations is not None
                assert isinstance(read, Name)
                of_relations.add(read.parts[1])
                continue
            by_field = (
                tokens.is_symbol(index + 1, ".") and index + 2 < len(tokens) and tokens[index + 2].is_name
            )
            own_fields = fields.setdefault(name, set())
            if not by_field:
                fields[name] = None
            elif own_fields is not None:
                own_fields.add(tokens[index + 2].name)
    return tuple(
        Uses(name, None if fields[name] is None else frozenset(fields[name] or ()))
        for name in [*names, *(QUALIFIED + name for name in names)]
        if name in fields
    )


def aggregate_over_windows(window: Window) -> Span | None:
    """The first aggregate that Spark computes over all windows; None without one."""
    tokens = tokenize(window.sql)
    own = {call.span.start for call in window.aggregates}
    read = [
        range(part.offset, part.offset + len(part.text))
        for part in window.outer.parts
        if isinstance(part, Piece) and part.source == window.sql and part.width is None
    ]

    def is_read(index: int) -> bool:
        """Whether it is at that position, and not in a subquery."""
        parent = tokens.parent[index]
        in_subquery = parent >= 0 and opens_query(tokens, parent) and is_read(parent)
        return not in_subquery and any(tokens[index].start in part for part in read)

    for index in range(len(tokens) - 1):
        name = tokens[index]
        if not _is_aggregate(name) or name.start in own:
            continue
        if tokens.is_symbol(index + 1, "(") and not tokens.is_symbol(index - 1, ".") and is_read(index):
            end = tokens.partner[index + 1] + 1
            if tokens.word(end) != "OVER":
                return tokens.span(index, end)
    return None


def _calls(
    tokens: TokenList, start: int, stop: int, window: str | None, own: frozenset[str] = frozenset()
) -> list[Range]:
    """Calls of aggregates that mention the window, if there is one, and have no OVER after them."""
    found = []
    for index in range(start, stop - 1):
        name = tokens[index]
        is_one = _is_aggregate(name) or (name.is_name and name.name.lower() in own)
        if not is_one or not tokens.is_symbol(index + 1, "("):
            continue
        if tokens.is_symbol(index - 1, ".") or tokens.word(index - 1) in ("LIKE", "ILIKE", "RLIKE"):
            continue
        close = tokens.partner[index + 1]
        if window is None and (name.name.lower() in _ARRAY or _in_subquery(tokens, index, start)):
            continue
        in_spark = name.name.lower() in ("array_max", "array_min")
        if in_spark and not _is_path(tokens, index + 2, close):
            continue  # Spark's own functions of arrays, over something made of the window
        end = close + 1
        if tokens.word(end) in ("IGNORE", "RESPECT") and tokens.word(end + 1) == "NULLS":
            end += 2
        if (
            tokens.word(end) == "WITHIN"
            and tokens.word(end + 1) == "GROUP"
            and tokens.is_symbol(end + 2, "(")
        ):
            end = tokens.partner[end + 2] + 1
        if tokens.word(end) == "FILTER" and tokens.is_symbol(end + 1, "("):
            end = tokens.partner[end + 1] + 1
        if tokens.word(end) == "OVER":
            continue
        mentions = window is None or any(
            tokens[at].is_name
            and tokens[at].name.lower() == window.lower()
            and not tokens.is_symbol(at - 1, ".")
            and not is_of_subquery(tokens, at, start)
            for at in range(index + 2, end)
        )
        if mentions:
            found.append((index, end))
    return found


def _is_aggregate(name: Token) -> bool:
    """Whether a token is the name of an aggregate, which may be quoted."""
    return name.kind in (TokenKind.WORD, TokenKind.QUOTED) and name.name.lower() in AGGREGATES


def _in_subquery(tokens: TokenList, index: int, start: int) -> bool:
    """Whether a token is in a subquery that begins after `start`."""
    parent = tokens.parent[index]
    while parent >= start:
        if opens_query(tokens, parent):
            return True
        parent = tokens.parent[parent]
    return False


def _call(
    tokens: TokenList,
    start: int,
    stop: int,
    name: str,
    piece: Callable[[Range], SqlText],
    atoms: Atoms,
) -> AggregateCall:
    written = tokens[start].name.lower()
    function = _ARRAY.get(written, written)
    close = tokens.partner[start + 1]
    span = tokens.span(start, stop)
    # an error of the call is at the whole of it
    word = Piece(function, tokens.sql, span.start, span.stop - span.start)
    text = SqlText.of(word, piece((start + 1, stop)))
    unknown = AggregateCall(name, None, None, False, (), text, span)
    arguments = tokens.split(start + 2, close)
    distinct = tokens.word(start + 2) == "DISTINCT"
    canonical = _KERNEL.get(function)
    if distinct:
        arguments = [(arguments[0][0] + 1, arguments[0][1]), *arguments[1:]]
        canonical = "count_distinct" if function == "count" and len(arguments) == 1 else None
        if function in _KERNEL and FUNCTIONS[_KERNEL[function]].ignores_distinct:
            canonical = _KERNEL[function]
    has_fractions = canonical is not None and FUNCTIONS[canonical].has_fractions
    expected = 2 if has_fractions else 1
    if distinct and tokens.is_symbol(arguments[0][0], "*"):
        return unknown  # of all columns
    if canonical is None or len(arguments) != expected or tokens.word(arguments[0][0]) == "ALL":
        return unknown
    parameters: tuple[float, ...] = ()
    if has_fractions:
        read = _fractions(tokens, arguments[1])
        if read is None:
            return unknown
        parameters = read
    ignore_nulls, rest = False, close + 1
    if tokens.word(rest) in ("IGNORE", "RESPECT"):
        ignore_nulls = tokens.word(rest) == "IGNORE"
        rest += 2
    first, last = arguments[0]
    # what COUNT(*) counts is there in every row
    argument = SqlText.of("1") if tokens.is_symbol(first, "*") else piece((first, last))
    if rest < stop:
        if tokens.word(rest) != "FILTER" or not FUNCTIONS[canonical].skips_nulls:
            return unknown
        # an aggregate that skips NULLs skips the rows that FILTER drops when they are NULL
        condition = rest + 3
        guard = piece((condition, stop - 1))
        guarded = WindowFragment(SqlText.of("CASE WHEN ", guard, " THEN ", argument, " END"), None, span)
        return AggregateCall(name, canonical, guarded, ignore_nulls, parameters, text, span)
    expression = parse_expression(tokens, first, last, atoms)
    fragment = WindowFragment(SqlText.of(argument), expression, tokens.span(first, last))
    return AggregateCall(name, canonical, fragment, ignore_nulls, parameters, text, span)


def _text_of(part: Range, piece: Callable[[Range], SqlText]) -> SqlText:
    return piece(part) if part[0] < part[1] else SqlText()


def _is_path(tokens: TokenList, start: int, stop: int) -> bool:
    return isinstance(parse_expression(tokens, start, stop), Name)


def _innermost(calls: list[Range]) -> list[Range]:
    """The calls that contain no others, of calls in the order of the text; those around one are Spark's."""
    following = zip_longest(calls, calls[1:])
    return [call for call, after in following if after is None or after[0] >= call[1]]


def _fractions(tokens: TokenList, argument: Range) -> tuple[float, ...] | None:
    """The fractions of percentile(x, 0.5) or percentile(x, array(0.1, 0.9)), if they are plain numbers."""
    start, stop = argument
    if stop - start == 1 and tokens[start].kind is TokenKind.NUMBER:
        return _numbers([tokens[start].text])
    return None


def _numbers(texts: list[str]) -> tuple[float, ...] | None:
    try:
        return tuple(float(text.rstrip("dDfF")) for text in texts)
    except ValueError:
        return None


def calls_aggregate(tokens: TokenList, item: Range) -> bool:
    """Whether an item of SELECT has an aggregate of the rows, not one of a frame or of a subquery."""
    at, stop = item
    while at < stop:
        if opens_query(tokens, at):
            at = tokens.partner[at]
        elif tokens.is_symbol(at + 1, "("):
            is_one = _is_aggregate(tokens[at]) and not tokens.is_symbol(at - 1, ".")
            if is_one and not _is_framed_call(tokens, tokens.partner[at + 1] + 1):
                return True
        at += 1
    return False


def _is_framed_call(tokens: TokenList, after: int) -> bool:
    """Whether OVER follows a call, possibly after FILTER (…), IGNORE NULLS or RESPECT NULLS."""
    while tokens.word(after) in ("FILTER", "IGNORE", "RESPECT"):
        after = tokens.partner[after + 1] + 1 if tokens.is_symbol(after + 1, "(") else after + 2
    return tokens.word(after) == "OVER"
