"""The skeleton of expressions: precedence, what is left opaque, and ranges that say their own text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from windrow.errors import ParseError
from windrow.syntax.expression_nodes import (
    Call,
    Expression,
    Literal,
    Name,
    Opaque,
    OperationNode,
    names_in,
    parts_of,
    plain_names,
)
from windrow.syntax.expressions import parse_expression
from windrow.syntax.subqueries import own_relations, subqueries
from windrow.syntax.tokens import TokenList, tokenize


def parse(sql: str) -> tuple[Expression, TokenList]:
    tokens = tokenize(sql)
    return parse_expression(tokens, 0, len(tokens)), tokens


def shown(sql: str) -> str:
    """The tree in prefix form; ⟨…⟩ is a stretch that is not taken apart."""
    return _shown(*parse(sql))


def _shown(expression: Expression, tokens: TokenList) -> str:
    match expression:
        case Name(parts=parts):
            return ".".join(parts)
        case Literal(range=where):
            return tokens.text(*where)
        case OperationNode(operator=operator, operands=operands):
            return f"({' '.join([operator, *(_shown(part, tokens) for part in operands)])})"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(_shown(part, tokens) for part in arguments)})"
        case Opaque(range=where):
            return f"⟨{tokens.text(*where)}⟩"


def nodes(expression: Expression) -> Iterator[Expression]:
    yield expression
    match expression:
        case OperationNode(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from nodes(part)


@pytest.mark.parametrize(
    ("sql", "tree"),
    [
        # logic
        ("a OR b AND NOT c = 1", "(OR a (AND b (NOT (= c 1))))"),
        ("a AND b AND c", "(AND a b c)"),
        ("NOT NOT a", "(NOT (NOT a))"),
        ("!a AND b", "(AND (NOT a) b)"),
        ("(a OR b) AND c", "(AND (OR a b) c)"),
        # comparison
        ("a < b + c * d", "(< a (+ b (* c d)))"),
        ("a == b", "(= a b)"),
        ("a != b", "(<> a b)"),
        ("a <=> b", "(<=> a b)"),
        ("a = b = c", "(= (= a b) c)"),
        # predicates
        ("a IS NULL", "(IS NULL a)"),
        ("a + 1 IS NOT NULL AND b", "(AND (NOT (IS NULL (+ a 1))) b)"),
        ("a IS DISTINCT FROM b", "(NOT (<=> a b))"),
        ("a IS NOT DISTINCT FROM b", "(<=> a b)"),
        ("a IN (1, b + 2)", "(IN a 1 (+ b 2))"),
        ("a NOT IN (b)", "(NOT (IN a b))"),
        ("a BETWEEN b AND c AND d", "(AND (BETWEEN a b c) d)"),
        ("a NOT BETWEEN b - 1 AND c OR d", "(OR (NOT (BETWEEN a (- b 1) c)) d)"),
        # arithmetic
        ("a - b - c", "(- (- a b) c)"),
        ("a / b * c % d DIV f", "(DIV (% (* (/ a b) c) d) f)"),
        ("-a * b", "(* (NEG a) b)"),
        ("a - -b", "(- a (NEG b))"),
        ("+a + b", "(+ a b)"),
        ("a + b || c", "⟨a + b || c⟩"),
        ("a | b ^ c & d << e = f", "(= ⟨a | b ^ c & d << e⟩ f)"),
        ("a >> 1 > b", "(> ⟨a >> 1⟩ b)"),
        ("a < b > c", "(> (< a b) c)"),
        ("~a", "⟨~a⟩"),
        # leaves
        ("1.5D + .5", "(+ 1.5D .5)"),
        ("'a' 'b' = c", "(= 'a' 'b' c)"),
        (":p + ?", "(+ :p ?)"),
        ("TRUE AND null", "(AND TRUE null)"),
        ("`a b`.`c``d`.e", "a b.c`d.e"),
        ("((a))", "a"),
        # calls
        ("f()", "f()"),
        ("F(a, g(b + 1))", "f(a, g((+ b 1)))"),
        ("year(s.d) = 2020", "(= year(s.d) 2020)"),
        # words that are names here
        ("interval > 1", "(> interval 1)"),
        ("date - timestamp", "(- date timestamp)"),
        ("case_ = end", "(= case_ end)"),
    ],
)
def test_precedence_is_sparks(sql, tree):
    assert shown(sql) == tree


@pytest.mark.parametrize(
    ("sql", "tree", "names"),
    [
        ("a.x > (SELECT max(x) FROM t)", "(> a.x ⟨(SELECT max(x) FROM t)⟩)", ["a.x"]),
        ("a NOT IN (SELECT x FROM t) OR b", "(OR ⟨a NOT IN (SELECT x FROM t)⟩ b)", ["a", "b"]),
        ("EXISTS (TABLE t) AND a", "(AND ⟨EXISTS (TABLE t)⟩ a)", ["a"]),
        ("a + ((VALUES 1)) * b", "(+ a (* ⟨((VALUES 1))⟩ b))", ["a", "b"]),
        ("f((SELECT b.x), c)", "f(⟨(SELECT b.x)⟩, c)", ["c"]),
    ],
)
def test_subqueries_that_stand_alone_mention_no_names(sql, tree, names):
    tokens = tokenize(sql)
    opened = {query[0] for query in subqueries(tokens, (0, len(tokens)))}
    expression = parse_expression(tokens, 0, len(tokens), alone=opened)
    assert _shown(expression, tokens) == tree
    found = [".".join(name.parts) for name in names_in(expression)]
    assert [name for name in found if name != "NOT"] == names


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("(SELECT 1 FROM t AS a, db.u b JOIN (SELECT 1 FROM c) d ON e.x = 1)", "A B C D"),
        ("(SELECT max(x) FROM db.t)", "T"),
        ("(SELECT f(x) FROM range(3) WHERE extract(year FROM y) = 1)", "RANGE"),
        ("(SELECT `v`.x FROM t AS `v`)", "V"),
        ("(VALUES 1)", ""),
    ],
)
def test_relations_of_a_subquery_have_names_of_their_own(sql, names):
    tokens = tokenize(sql)
    assert own_relations(tokens, (0, len(tokens))) == frozenset(names.split())


@pytest.mark.parametrize(
    "sql",
    [
        "CASE WHEN s.a THEN e.b END",
        "CASE s.a WHEN 1 THEN CASE WHEN x THEN y END ELSE 2 END",
        "CAST(s.a AS INT)",
        "s.a::int",
        "s.a::decimal(10, 2)",
        "s.a[0]",
        "s.a[0].b",
        "s.a:b.c",
        "DATE '2020-01-01'",
        "TIMESTAMP'2020-01-01 00:00:00'",
        "INTERVAL 7 DAYS",
        "INTERVAL -1 DAY",
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL 1 DAY 2 HOURS",
        "count(*)",
        "f(DISTINCT s.a)",
        "f(x -> x + s.a)",
        "f(name => s.a)",
        "db.f(s.a)",
        "struct(s.a, e.b AS c)",
        "array(1, 2)[0]",
        "EXTRACT(YEAR FROM s.a)",
        "s.a || e.b",
    ],
)
def test_a_form_that_is_not_taken_apart_is_one_operand(sql):
    assert shown(sql) == f"⟨{sql}⟩"
    assert shown(f"{sql} = 1 AND x") == f"(AND (= ⟨{sql}⟩ 1) x)"


@pytest.mark.parametrize(
    "sql",
    [
        "s.a LIKE 'x%'",
        "s.a NOT LIKE e.b ESCAPE '/'",
        "s.a RLIKE e.b",
        "s.a NOT ILIKE e.b",
        "s.a IS TRUE",
        "s.a IS NOT UNKNOWN",
    ],
)
def test_a_predicate_that_is_not_taken_apart_is_one_condition(sql):
    assert shown(sql) == f"⟨{sql}⟩"
    assert shown(f"NOT {sql} AND x") == f"(AND (NOT ⟨{sql}⟩) x)"


@pytest.mark.parametrize(
    "sql",
    [
        "a IN (SELECT b FROM t)",
        "f(a)(b)",
        "(SELECT 1)",
        "EXISTS (SELECT 1 FROM t)",
        "(a, b) = (c, d)",
        "a COLLATE UTF8_LCASE = b",
        "a AT TIME ZONE 'x'",
        "sum(a) OVER (PARTITION BY b)",
        "a LIKE ANY ('x', 'y')",
        "a BETWEEN b AND c = d",
        "a IS DISTINCT FROM b = c",
        "a +",
        "= a",
        "a b",
        "a!",
        "*",
        "",
        "a ? b",
        "{fn now()}",
    ],
)
def test_what_the_parser_does_not_know_is_opaque_as_a_whole_and_never_an_error(sql):
    found, tokens = parse(sql)
    assert isinstance(found, Opaque)
    assert tokens.text(*found.range) == sql


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("s.a + e.b > f(l.c)", {"s.a", "e.b", "l.c"}),
        ("CASE WHEN s.a THEN e.b ELSE `l l`.c END", {"s.a", "e.b", "l l.c"}),
        ("struct(s, e.b)[0]", {"s", "e.b"}),
        ("x IN (SELECT y FROM t WHERE s.a = y)", {"x", "y", "t", "s.a"}),
        ("transform(s.a, v -> v + e.b)", {"s.a", "v", "e.b"}),
        ("s.a:b.c", {"s.a"}),
        (":s + 1", set()),
        ("'s.a'", set()),
    ],
)
def test_every_name_is_seen_inside_opaque_stretches_too(sql, names):
    found, _ = parse(sql)
    seen = {".".join(name.parts) for name in names_in(found)}
    assert names <= seen
    assert not any(word in {"f", "transform"} for word in seen)


def test_parentheses_count_to_the_text_of_what_they_hold():
    found, tokens = parse("((a + b)) * (c)")
    assert isinstance(found, OperationNode)
    assert [tokens.text(*part.range) for part in found.operands] == ["((a + b))", "(c)"]


def test_a_range_in_the_middle_of_a_text_is_parsed_alone():
    tokens = tokenize("SELECT a + b FROM t")
    found = parse_expression(tokens, 1, 4)
    assert tokens.text(*found.range) == "a + b"


# -- random expressions -----------------------------------------------------------------------------

# binding strength, as the grammar of Spark orders it
OR, AND, NOT, PREDICATE, COMPARISON, SUM, PRODUCT, UNARY, PRIMARY = range(9)


@dataclass(frozen=True)
class Made:
    """A text, the tree that it must be read as, and how strongly its outermost operator binds."""

    text: str
    tree: str
    strength: int

    def at(self, least: int) -> str:
        """The text where an operand must bind at least so strongly."""
        return self.text if self.strength >= least else f"({self.text})"


LEAVES = st.sampled_from(
    [
        *(Made(text, text, PRIMARY) for text in ("s.a", "e.b", "p", "`x`", "1", "2.5D", "'t'", "NULL", ":v")),
        *(Made(text, f"⟨{text}⟩", PRIMARY) for text in ("DATE '2020-01-01'", "INTERVAL 1 DAY", "s.a[0]")),
        *(Made(text, f"⟨{text}⟩", PRIMARY) for text in ("CASE WHEN s.a THEN 1 END", "CAST(e.b AS INT)")),
    ]
).map(lambda made: Made(made.text, made.tree.replace("`", ""), made.strength))


COMPARISONS = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
PREDICATES = {
    "{0} IS NULL": "(IS NULL {0})",
    "{0} IS NOT NULL": "(NOT (IS NULL {0}))",
    "{0} IN ({1}, {2})": "(IN {0} {1} {2})",
    "{0} NOT IN ({1})": "(NOT (IN {0} {1}))",
    "{0} BETWEEN {1} AND {2}": "(BETWEEN {0} {1} {2})",
    "{0} NOT BETWEEN {1} AND {2}": "(NOT (BETWEEN {0} {1} {2}))",
    "{0} IS DISTINCT FROM {1}": "(NOT (<=> {0} {1}))",
    "{0} IS NOT DISTINCT FROM {1}": "(<=> {0} {1})",
}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Made:
    """An expression, its parentheses only where Spark's precedence asks for them."""
    form = draw(st.integers(0, 7)) if depth else 0

    def operand() -> Made:
        return draw(expressions(depth - 1))

    def binary(strength: int, operators: dict[str, str]) -> Made:
        left, operator, right = operand(), draw(st.sampled_from(sorted(operators))), operand()
        text = f"{left.at(strength)} {operator} {right.at(strength + 1)}"
        return Made(text, f"({operators[operator]} {left.tree} {right.tree})", strength)

    match form:
        case 0:
            return draw(LEAVES)
        case 1:
            word, strength = draw(st.sampled_from([("OR", OR), ("AND", AND)]))
            parts = [operand() for _ in range(draw(st.integers(2, 3)))]
            text = f" {word} ".join(part.at(strength + 1) for part in parts)
            return Made(text, f"({word} {' '.join(part.tree for part in parts)})", strength)
        case 2:
            part = operand()
            return Made(f"NOT {part.at(NOT)}", f"(NOT {part.tree})", NOT)
        case 3:
            template = draw(st.sampled_from(sorted(PREDICATES)))
            parts = [operand() for _ in range(3)]
            text = template.format(*(part.at(SUM) for part in parts))
            return Made(text, PREDICATES[template].format(*(part.tree for part in parts)), PREDICATE)
        case 4:
            return binary(COMPARISON, COMPARISONS)
        case 5:
            strength, operators = draw(st.sampled_from([(SUM, "+ -"), (PRODUCT, "* / % DIV")]))
            return binary(strength, {operator: operator for operator in operators.split()})
        case 6:
            part = operand()
            return Made(f"- {part.at(UNARY)}", f"(NEG {part.tree})", UNARY)
        case _:
            parts = [operand() for _ in range(draw(st.integers(0, 3)))]
            text, tree = (", ".join(getattr(part, what) for part in parts) for what in ("text", "tree"))
            return Made(f"F({text})", f"f({tree})", PRIMARY)


@given(expressions())
def test_an_expression_is_read_as_the_tree_that_it_was_written_from(made):
    assert shown(made.text) == made.tree


@given(expressions(3), expressions(3))
def test_the_range_of_every_node_is_the_text_of_that_node_alone(left, right):
    found, tokens = parse(f"({left.text}) AND ({right.text})")
    for node in nodes(found):
        tree = _shown(node, tokens)
        # the predicate inside a negated one has no text of its own: `a IS NOT NULL` is both
        assert shown(tokens.text(*node.range)) in (tree, f"(NOT {tree})")


SOUP = ["a", ".", "(", ")", "[", "]", ",", "+", "-", "AND", "NOT", "IS", "NULL", "IN", "BETWEEN", "CASE",
        "END", "LIKE", "INTERVAL", "DATE", "1", "'x'", "::", ":", "?", "<"]  # fmt: skip


@given(st.lists(st.sampled_from(SOUP), max_size=12))
def test_no_sequence_of_tokens_makes_the_parser_fail(words):
    try:
        tokens = tokenize(" ".join(words))
    except ParseError:
        assume(False)
    found = parse_expression(tokens, 0, len(tokens))
    assert 0 <= found.range[0] <= found.range[1] <= len(tokens)


DEEP = {
    "brackets": "(" * 100 + "a.x" + ")" * 100 + " < b.x",
    "brackets with operators": "(1 + " * 100 + "a.x" + ")" * 100 + " < b.x",
    "many brackets": "(1 + " * 490 + "a.x" + ")" * 490 + " < b.x",
    "NOT": "NOT " * 3_000 + "a.x < b.x",
    "minus": "- " * 3_000 + "a.x < b.x",
    "a sum": "a.x" + " + b.x" * 3_000,
    "comparisons": "a.x" + " = b.x" * 3_000,
    "bits": "a.x" + " | b.x" * 3_000,
    "calls": "abs(" * 490 + "a.x + b.x" + ")" * 490,
    "CASE": "CASE WHEN true THEN " * 300 + "a.x + b.x" + " END" * 300,
    "casts": "a.x" + "::int" * 3_000 + " < b.x",
    "subscripts": "a.x" + "[1]" * 3_000 + " < b.x",
}


@pytest.mark.parametrize("deeply", [False, True])
@pytest.mark.parametrize("name", DEEP)
def test_however_deep_an_expression_is_its_names_are_found(name, deeply):
    tokens = tokenize(DEEP[name])
    found = parse_expression(tokens, 0, len(tokens), deeply=deeply)
    assert {".".join(one.parts) for one in names_in(found)} >= {"a.x", "b.x"}
    assert parts_of(found)
    list(plain_names(found))


def test_a_hundred_brackets_around_an_operand_are_none():
    tokens = tokenize(DEEP["brackets"])
    found = parse_expression(tokens, 0, len(tokens))
    assert isinstance(found, OperationNode)
    assert [type(part) for part in found.operands] == [Name, Name]
