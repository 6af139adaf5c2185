"""Spark SQL scalar expressions over variables, with SQL's three-valued logic.

sqlglot parses the text, so it shares no parser with what it checks, and it is compiled to a Python function
of an environment. Where sqlglot and Spark would group operators differently, parentheses are required.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import sqlglot
import sqlglot.errors
from sqlglot import exp

from windrow.errors import AnalysisError, ExecutionError, NotSupportedError, did_you_mean
from windrow.kernels.reference import arithmetic, functions
from windrow.kernels.reference.casts import TARGETS, Type, cast
from windrow.kernels.reference.comparison import compare, equals, identical
from windrow.kernels.reference.intervals import UNITS, interval
from windrow.kernels.reference.values import Env, SubqueryValues, mismatch

__all__ = ["compile_expression"]

Evaluator = Callable[[Env], Any]


def compile_expression(sql: str, *, ansi: bool = True) -> Evaluator:
    """The expression as a function of an environment.

    ``v.field`` is a field of the row that the variable `v` is bound to, NULL if there is no such row; deeper
    paths go into structs. If the environment is itself a row, its fields are written bare. Names match
    exactly, or else regardless of case. A name alone after IN may be bound to a `SubqueryValues`.

    Parameters
    ----------
    sql
        A Spark SQL scalar expression.
    ansi
        Whether division by zero, overflow and malformed casts raise (Spark's ANSI mode) or return NULL. A
        string beside an operand of another type is cast as in ANSI mode in either.

    Returns
    -------
    callable
        From an environment to the value. It raises :class:`ExecutionError` as Spark would, and
        :class:`AnalysisError` (``UNKNOWN_NAME``, ``AMBIGUOUS_NAME``, ``DATATYPE_MISMATCH``) when it meets a
        name that the environment lacks or operands that the operator does not take.

    Raises
    ------
    NotSupportedError
        ``REFERENCE_EXPRESSION`` for anything that the reference interpreter does not know.

    Examples
    --------
    >>> compile_expression("s.val < 25 OR NULL")({"s": {"val": 30}}) is None
    True
    """
    try:
        tree = sqlglot.parse_one(_with_escaped_quotes(sql), dialect="spark", into=exp.Condition)
    except sqlglot.errors.SqlglotError as error:
        raise _unsupported(f"expression {sql!r}") from error
    return _compile(tree, ansi)


_LITERAL = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)


def _with_escaped_quotes(sql: str) -> str:
    """A doubled quote in a literal as an escaped one; sqlglot would read two adjacent literals."""

    def escaped(match: re.Match[str]) -> str:
        text = match[0]
        if not text.startswith("'"):
            return text
        return "'" + re.sub(r"\\.|''", lambda pair: r"\'" if pair[0] == "''" else pair[0], text[1:-1]) + "'"

    return _LITERAL.sub(escaped, sql)


def _compile(node: Any, ansi: bool) -> Evaluator:
    if isinstance(node, exp.Paren):
        return _compile(node.this, ansi)
    _refuse_unclear_grouping(node)
    if isinstance(node, exp.Anonymous):
        return _anonymous(node, ansi)
    if type(node) in _LEAVES:
        return _LEAVES[type(node)](node)
    if type(node) in _OPERATORS:
        return _strict(_OPERATORS[type(node)], [node.this, node.expression], ansi)
    if type(node) in _FUNCTIONS or type(node) in _CHECKED_FUNCTIONS:
        return _function(node, ansi)
    if type(node) in _FORMS:
        return _FORMS[type(node)](node, ansi)
    if isinstance(node, exp.Struct):
        return _struct(node, ansi)
    raise _unsupported(node.sql(dialect="spark"))


def _compile_all(nodes: Sequence[Any], ansi: bool) -> list[Evaluator]:
    return [_compile(node, ansi) for node in nodes]


# --- literals and names ---------------------------------------------------------------------------


def _literal(node: exp.Literal) -> Evaluator:
    text = node.this
    if node.is_string:
        return _constant(text)
    if "e" in text.lower():
        return _constant(float(text))
    if text.isdigit() and int(text) < 2**63:
        return _constant(int(text))
    return _constant(Decimal(text))


def _interval(node: exp.Interval) -> Evaluator:
    amount, sign = node.this, 1
    if isinstance(amount, exp.Neg):
        amount, sign = amount.this, -1
    unit = node.args.get("unit")
    name = unit.sql().upper() if unit is not None else ""
    value = interval(amount.this, name) if isinstance(amount, exp.Literal) and name in UNITS else None
    if value is None:
        raise _unsupported(node.sql(dialect="spark"))
    return _constant(value if sign == 1 else arithmetic.negate(value, True))


def _constant(value: Any) -> Evaluator:
    return lambda _env: value


def _name(node: exp.Column | exp.Dot) -> Evaluator:
    if not all(isinstance(part, exp.Identifier) for part in node.parts):
        raise _unsupported(node.sql(dialect="spark"))
    path = [part.name for part in node.parts]

    def value(env: Env) -> Any:
        found: Any = env
        for name in path:
            if found is None:
                return None
            found = _look_up(found, name)
        return found

    return value


def _look_up(mapping: Any, name: str) -> Any:
    if not isinstance(mapping, Mapping):
        raise mismatch(f"field {name}", mapping)
    if name in mapping:
        return mapping[name]
    folded = [key for key in mapping if key.lower() == name.lower()]
    if len(folded) != 1:
        what = "ambiguous" if folded else "unknown"
        raise AnalysisError(
            f"name {name} is {what}", condition=f"{what.upper()}_NAME", hint=did_you_mean(name, mapping)
        )
    return mapping[folded[0]]


# --- logic and comparison -------------------------------------------------------------------------


def _and(node: exp.And, ansi: bool) -> Evaluator:
    return _kleene(node, ansi, decisive=False)


def _or(node: exp.Or, ansi: bool) -> Evaluator:
    return _kleene(node, ansi, decisive=True)


def _kleene(node: Any, ansi: bool, decisive: bool) -> Evaluator:
    """AND (FALSE decides) or OR (TRUE decides), the right side evaluated only if the left does not decide."""
    left, right = _compile(node.this, ansi), _compile(node.expression, ansi)

    def value(env: Env) -> bool | None:
        one = _truth(left(env))
        if one is decisive:
            return decisive
        other = _truth(right(env))
        if other is decisive:
            return decisive
        return None if one is None or other is None else not decisive

    return value


def _not(node: exp.Not, ansi: bool) -> Evaluator:
    operand = _compile(node.this, ansi)
    return lambda env: _negated(_truth(operand(env)))


def _truth(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise mismatch("logic", value)


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _between(node: exp.Between, ansi: bool) -> Evaluator:
    _refuse_arguments(node, "symmetric")
    value, low, high = _compile_all([node.this, node.args["low"], node.args["high"]], ansi)

    def between(env: Env) -> bool | None:
        subject = value(env)
        above, below = _at_least(subject, low(env)), _at_least(high(env), subject)
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return between


def _at_least(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else compare(left, right) >= 0


def _in(node: exp.In, ansi: bool) -> Evaluator:
    _refuse_arguments(node, "query", "unnest", "field", "is_global")
    value, items = _compile(node.this, ansi), _compile_all(node.expressions, ansi)
    is_name = len(items) == 1 and isinstance(node.expressions[0], exp.Column)

    def contained(env: Env) -> bool | None:
        subject, column = value(env), items[0](env) if is_name else None
        if isinstance(column, SubqueryValues) and not column:
            return False
        if subject is None:
            return None
        answer: bool | None = False
        for item in column if isinstance(column, SubqueryValues) else (item(env) for item in items):
            same = equals(subject, item)
            if same:
                return True
            if same is None:
                answer = None
        return answer

    return contained


def _is(node: exp.Is, ansi: bool) -> Evaluator:
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise _unsupported(node.sql(dialect="spark"))
    left, right = _compile(node.this, ansi), _compile(node.expression, ansi)
    return lambda env: identical(left(env), right(env))


def _null_safe(negated: bool) -> Callable[[Any, bool], Evaluator]:
    def make(node: Any, ansi: bool) -> Evaluator:
        left, right = _compile(node.this, ansi), _compile(node.expression, ansi)
        return lambda env: identical(left(env), right(env)) != negated

    return make


def _like(node: exp.Like, ansi: bool) -> Evaluator:
    return _matches(node, _constant("\\"), ansi)


def _escape(node: exp.Escape, ansi: bool) -> Evaluator:
    if not isinstance(node.this, exp.Like):
        raise _unsupported(node.sql(dialect="spark"))
    return _matches(node.this, _compile(node.expression, ansi), ansi)


def _matches(node: exp.Like, escape: Evaluator, ansi: bool) -> Evaluator:
    text, pattern = _compile(node.this, ansi), _compile(node.expression, ansi)
    negate = bool(node.args.get("negate"))

    def like(env: Env) -> bool | None:
        subject, template = text(env), pattern(env)
        if subject is None or template is None:
            return None
        found = re.fullmatch(_like_pattern(template, escape(env)), subject, re.DOTALL) is not None
        return found != negate

    return like


def _like_pattern(template: str, escape: str) -> str:
    parts = []
    characters = iter(template)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise ExecutionError(
                    f"LIKE pattern {template!r} has the escape character before {escaped!r}",
                    condition="INVALID_FORMAT",
                    sqlstate="42601",
                )
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "".join(parts)


# --- conditional expressions: these do not evaluate all their operands, or take NULLs ---------------


def _case(node: exp.Case, ansi: bool) -> Evaluator:
    subject = _compile(node.this, ansi) if node.this is not None else None
    branches = [_compile_all([branch.this, branch.args["true"]], ansi) for branch in node.args["ifs"]]
    default = _compile(node.args.get("default") or exp.Null(), ansi)

    def value(env: Env) -> Any:
        for condition, result in branches:
            met = _truth(condition(env)) if subject is None else equals(subject(env), condition(env))
            if met:
                return result(env)
        return default(env)

    return value


def _if(node: exp.If, ansi: bool) -> Evaluator:
    condition, true = _compile_all([node.this, node.args["true"]], ansi)
    false = _compile(node.args.get("false") or exp.Null(), ansi)
    return lambda env: true(env) if _truth(condition(env)) else false(env)


def _coalesce(node: exp.Coalesce, ansi: bool) -> Evaluator:
    operands = _compile_all([node.this, *node.expressions], ansi)
    return lambda env: next((found for operand in operands if (found := operand(env)) is not None), None)


def _nvl2(node: exp.Nvl2, ansi: bool) -> Evaluator:
    test, present, absent = _compile_all([node.this, node.args["true"], node.args["false"]], ansi)
    return lambda env: absent(env) if test(env) is None else present(env)


def _nullif(node: exp.Nullif, ansi: bool) -> Evaluator:
    left, right = _compile(node.this, ansi), _compile(node.expression, ansi)

    def value(env: Env) -> Any:
        one = left(env)
        return None if equals(one, right(env)) else one

    return value


def _extreme(sign: int) -> Callable[[Any, bool], Evaluator]:
    """GREATEST (1) or LEAST (-1): NULLs are skipped."""

    def make(node: Any, ansi: bool) -> Evaluator:
        operands = _compile_all([node.this, *node.expressions], ansi)

        def value(env: Env) -> Any:
            best = None
            for operand in operands:
                candidate = operand(env)
                if candidate is not None and (best is None or compare(candidate, best) == sign):
                    best = candidate
            return best

        return value

    return make


def _is_nan(node: exp.IsNan, ansi: bool) -> Evaluator:
    operand = _compile(node.this, ansi)

    def value(env: Env) -> bool:
        number = operand(env)
        return isinstance(number, float) and number != number

    return value


# --- operators and functions that return NULL for a NULL operand ---------------------------------------


def _function(node: Any, ansi: bool) -> Evaluator:
    if type(node) in _CHECKED_FUNCTIONS:
        _refuse_arguments(node, *(node.args.keys() - {"this"}))
        return _strict(_CHECKED_FUNCTIONS[type(node)], [node.this], ansi)
    function, names = _FUNCTIONS[type(node)]
    _refuse_arguments(node, *(node.args.keys() - set(names) - _FLAGS))
    arguments = [node.args[name] for name in names if node.args.get(name) is not None]
    return _strict(_unchecked(function), arguments, ansi)


def _anonymous(node: exp.Anonymous, ansi: bool) -> Evaluator:
    """The functions for which sqlglot has no class."""
    name, arguments = node.name.upper(), node.expressions
    if name == "PMOD" and len(arguments) == 2:
        return _strict(arithmetic.pmod, arguments, ansi)
    if name in ("ISNULL", "ISNOTNULL") and len(arguments) == 1:
        operand = _compile(arguments[0], ansi)
        return lambda env: (operand(env) is None) == (name == "ISNULL")
    raise _unsupported(f"function {node.name}")


def _struct(node: exp.Struct, ansi: bool) -> Evaluator:
    """``named_struct('a', x)``."""
    values = {item.this.name: _compile(item.expression, ansi) for item in node.expressions}
    return lambda env: {name: value(env) for name, value in values.items()}


def _concat(node: exp.Concat | exp.DPipe, ansi: bool) -> Evaluator:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    return _strict(_unchecked(functions.concat), parts, ansi)


def _date_add(node: exp.TsOrDsAdd, ansi: bool) -> Evaluator:
    """DATE_ADD, and DATE_SUB as sqlglot rewrites it."""
    if node.text("unit").upper() != "DAY":
        raise _unsupported(node.sql(dialect="spark"))
    return _strict(_unchecked(functions.date_add), [node.this, node.expression], ansi)


def _neg(node: exp.Neg, ansi: bool) -> Evaluator:
    return _strict(arithmetic.negate, [node.this], ansi)


def _cast(node: exp.Cast | exp.TryCast, ansi: bool) -> Evaluator:
    operand, to, safe = _compile(node.this, ansi), _type(node.to), bool(node.args.get("safe"))
    return lambda env: cast(operand(env), to, ansi=ansi, safe=safe)


def _type(node: exp.DataType) -> Type:
    name = str(node.this.value).lower()
    name = {"text": "string", "timestamptz": "timestamp", "timestampntz": "timestamp"}.get(name, name)
    if name not in TARGETS:
        raise _unsupported(f"type {node.sql(dialect='spark')}")
    return Type(name, *(int(size.name) for size in node.expressions))


def _to_date(node: exp.TsOrDsToDate, ansi: bool) -> Evaluator:
    """The conversion that sqlglot puts around the arguments of date functions."""
    _refuse_arguments(node, "format", "safe")
    operand = _compile(node.this, ansi)
    return lambda env: cast(operand(env), Type("date"), ansi=ansi)


def _strict(function: Callable[..., Any], arguments: Sequence[Any], ansi: bool) -> Evaluator:
    """The function of the operands' values and the ANSI mode, NULL if an operand is."""
    operands = _compile_all(arguments, ansi)

    def value(env: Env) -> Any:
        values = []
        for operand in operands:
            found = operand(env)
            if found is None:
                return None
            values.append(found)
        return function(*values, ansi)

    return value


def _unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is the same in either mode."""
    return lambda *values: function(*values[:-1])


def _compared(test: Callable[[int], bool]) -> arithmetic.Operator:
    return lambda left, right, _ansi: test(compare(left, right))


_LEAVES: dict[type, Callable[[Any], Evaluator]] = {
    exp.Literal: _literal,
    exp.RawString: lambda node: _constant(node.this),
    exp.Boolean: lambda node: _constant(node.this),
    exp.Null: lambda _node: _constant(None),
    exp.Interval: _interval,
    exp.Column: _name,
    exp.Dot: _name,
}


_OPERATORS: dict[type, arithmetic.Operator] = {
    exp.Add: arithmetic.add,
    exp.Sub: arithmetic.subtract,
    exp.Mul: arithmetic.multiply,
    exp.Div: arithmetic.divide,
    exp.IntDiv: arithmetic.integral_divide,
    exp.Mod: arithmetic.remainder,
    exp.EQ: lambda left, right, _ansi: equals(left, right),
    exp.NEQ: lambda left, right, _ansi: not equals(left, right),
    exp.LT: _compared(lambda order: order < 0),
    exp.LTE: _compared(lambda order: order <= 0),
    exp.GT: _compared(lambda order: order > 0),
    exp.GTE: _compared(lambda order: order >= 0),
}

_CHECKED_FUNCTIONS: dict[type, Callable[[Any, bool], Any]] = {
    exp.Abs: functions.absolute,
    exp.Floor: functions.floor,
    exp.Ceil: functions.ceiling,
}

_FUNCTIONS: dict[type, tuple[Callable[..., Any], tuple[str, ...]]] = {
    exp.Sign: (functions.sign, ("this",)),
    exp.Round: (functions.rounded, ("this", "decimals")),
    exp.Length: (functions.length, ("this",)),
    exp.ArraySize: (len, ("this",)),
    exp.Upper: (functions.upper, ("this",)),
    exp.Lower: (functions.lower, ("this",)),
    exp.Substring: (functions.substring, ("this", "start", "length")),
    exp.DateDiff: (functions.date_diff, ("this", "expression")),
    exp.Year: (functions.date_part(lambda date: date.year), ("this",)),
    exp.Month: (functions.date_part(lambda date: date.month), ("this",)),
    exp.Day: (functions.date_part(lambda date: date.day), ("this",)),
    exp.DayOfMonth: (functions.date_part(lambda date: date.day), ("this",)),
    exp.DayOfWeek: (functions.date_part(lambda date: date.isoweekday() % 7 + 1), ("this",)),
}

# Arguments of sqlglot's nodes that say how a dialect behaves, and have no operand.
_FLAGS = {"ignore_nulls", "safe", "typed", "coalesce"}

_FORMS: dict[type, Callable[[Any, bool], Evaluator]] = {
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.NullSafeEQ: _null_safe(negated=False),
    exp.EqualNull: _null_safe(negated=False),
    exp.NullSafeNEQ: _null_safe(negated=True),
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nvl2: _nvl2,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme(1),
    exp.Least: _extreme(-1),
    exp.IsNan: _is_nan,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Neg: _neg,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.TsOrDsAdd: _date_add,
    exp.TsOrDsToDate: _to_date,
}

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PREDICATES = (exp.Is, exp.Between, exp.In, exp.Like, exp.Escape)


def _refuse_unclear_grouping(node: Any) -> None:
    """Refuse what Spark reads from left to right and sqlglot does not: a || b + c, a = b < c."""
    right = node.args.get("expression")
    unclear = isinstance(node, exp.DPipe) and isinstance(right, exp.Add | exp.Sub)
    if isinstance(node, _COMPARISONS):
        negated = right.this if isinstance(right, exp.Not) else right
        unclear = isinstance(negated, _COMPARISONS + _PREDICATES)
    if unclear:
        raise _unsupported(f"{node.sql(dialect='spark')} without parentheses")


def _refuse_arguments(node: Any, *names: str) -> None:
    for name in names:
        if node.args.get(name):
            raise _unsupported(node.sql(dialect="spark"))


def _unsupported(what: str) -> NotSupportedError:
    return NotSupportedError(
        f"the reference interpreter does not support {what}", condition="REFERENCE_EXPRESSION"
    )
