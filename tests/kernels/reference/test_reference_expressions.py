"""The reference interpreter's expressions. ``test_reference_spark.py`` holds such against Spark itself."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import AnalysisError, ExecutionError, NotSupportedError
from windrow.kernels.reference import BoundRow, compile_expression

T, F, N = True, False, None
DAY = datetime.timedelta(days=1)


def value(sql: str, ansi: bool = True, **env: Any) -> Any:
    return compile_expression(sql, ansi=ansi)(env)


class TestThreeValuedLogic:
    @pytest.mark.parametrize(
        ("left", "right", "conjunction", "disjunction"),
        [
            (T, T, T, T),
            (T, F, F, T),
            (T, N, N, T),
            (F, T, F, T),
            (F, F, F, F),
            (F, N, F, N),
            (N, T, N, T),
            (N, F, F, N),
            (N, N, N, N),
        ],
    )
    def test_and_or(self, left: Any, right: Any, conjunction: Any, disjunction: Any) -> None:
        assert value("a AND b", a=left, b=right) is conjunction
        assert value("a OR b", a=left, b=right) is disjunction

    @pytest.mark.parametrize(("operand", "expected"), [(T, F), (F, T), (N, N)])
    def test_not(self, operand: Any, expected: Any) -> None:
        assert value("NOT a", a=operand) is expected
        assert value("!a", a=operand) is expected

    @pytest.mark.parametrize(
        ("test", "of_true", "of_false", "of_null"),
        [
            ("IS NULL", F, F, T),
            ("IS NOT NULL", T, T, F),
            ("IS TRUE", T, F, F),
            ("IS NOT TRUE", F, T, T),
            ("IS FALSE", F, T, F),
            ("IS NOT FALSE", T, F, T),
            ("IS UNKNOWN", F, F, T),
        ],
    )
    def test_is(self, test: str, of_true: bool, of_false: bool, of_null: bool) -> None:
        assert [value(f"a {test}", a=a) for a in (T, F, N)] == [of_true, of_false, of_null]

    @pytest.mark.parametrize("operator", ["=", "<>", "!=", "==", "<", "<=", ">", ">="])
    def test_a_comparison_with_null_is_null(self, operator: str) -> None:
        assert value(f"1 {operator} NULL") is value(f"NULL {operator} NULL") is None

    def test_null_safe_equality(self) -> None:
        assert [value("a <=> b", a=a, b=b) for a, b in ((N, N), (N, 1), (1, N), (1, 1))] == [T, F, F, T]
        assert [value("a IS DISTINCT FROM b", a=a, b=b) for a, b in ((N, N), (1, N), (1, 1))] == [F, T, F]
        assert value("a IS NOT DISTINCT FROM b", a=N, b=N) is True

    def test_the_left_side_decides_before_the_right_is_evaluated(self) -> None:
        assert value("FALSE AND 1 / 0 > 1") is False
        assert value("TRUE OR 1 / 0 > 1") is True
        with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
            value("1 / 0 > 1 AND FALSE")

    def test_in_and_between(self) -> None:
        assert [value(f"1 IN {items}") for items in ("(1, NULL)", "(2, NULL)", "(2)")] == [T, N, F]
        assert value("NULL IN (1)") is None
        assert value("1 NOT IN (2, NULL)") is None
        assert value("1 IN (1, 1 / 0)") is True
        assert value("3 BETWEEN NULL AND 2") is False
        assert value("1 BETWEEN NULL AND 2") is None
        assert value("2 NOT BETWEEN 1 AND NULL") is None

    @given(st.sampled_from([T, F, N]), st.sampled_from([T, F, N]))
    def test_de_morgan(self, a: Any, b: Any) -> None:
        assert value("NOT (a AND b)", a=a, b=b) is value("NOT a OR NOT b", a=a, b=b)

    def test_logic_takes_booleans_only(self) -> None:
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            value("1 AND TRUE")


class TestNames:
    ROW = BoundRow({"val": 5, "Mixed": 6, "part": {"deep": {"x": 7}}})

    def test_fields_of_a_variable_and_of_structs(self) -> None:
        assert value("s.val + s.part.deep.x", s=self.ROW) == 12
        assert value("s.a.b.c.d.e", s={"a": {"b": {"c": {"d": {"e": 1}}}}}) == 1

    def test_a_missing_row_is_a_row_of_nulls(self) -> None:
        assert value("s.val", s=None) is None
        assert value("s IS NULL", s=None) is True
        assert value("s.part.deep", s=None) is None

    def test_bare_fields_of_a_row(self) -> None:
        assert compile_expression("val * 2")(self.ROW) == 10
        assert compile_expression("part.deep.x")(self.ROW) == 7

    def test_names_match_regardless_of_case(self) -> None:
        assert value("S.MIXED", s=self.ROW) == 6
        assert value("`s`.`mixed`", s=self.ROW) == 6

    def test_the_exact_spelling_wins(self) -> None:
        assert compile_expression("a")({"A": 1, "a": 2}) == 2
        with pytest.raises(AnalysisError, match="AMBIGUOUS_NAME"):
            compile_expression("xy")({"Xy": 1, "xY": 2})

    def test_an_unknown_name_is_an_error(self) -> None:
        with pytest.raises(AnalysisError, match="did you mean val"):
            value("s.vall", s=self.ROW)

    def test_only_rows_and_structs_have_fields(self) -> None:
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            value("sp.val", sp=1)
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            value("w.val", w=[{"val": 1}])

    def test_words_of_the_clause_are_names_too(self) -> None:
        assert value("start.val + end.val + label.val", start=self.ROW, end=self.ROW, label=self.ROW) == 15

    def test_row_variables_compare_by_identity(self) -> None:
        a, twin = BoundRow({"x": 1}), BoundRow({"x": 1})
        assert [value("a = b", a=a, b=b) for b in (a, twin, None)] == [T, F, N]
        assert [value("a <> b", a=a, b=b) for b in (a, twin, None)] == [F, T, N]
        assert [value("a <=> b", a=a, b=b) for b in (a, twin, None)] == [T, F, F]
        assert value("a IS DISTINCT FROM b", a=a, b=twin) is True
        assert value("a IN (b, a)", a=a, b=twin) is True
        assert value("a = b", a={"x": 1}, b={"x": 1}) is True


class TestLiterals:
    @pytest.mark.parametrize(
        ("sql", "expected"),
        [
            ("1", 1),
            ("1L", 1),
            ("1.50", Decimal("1.50")),
            ("1.5BD", Decimal("1.5")),
            ("1.5D", 1.5),
            ("1e3", 1000.0),
            ("'it''s'", "it's"),
            (r"'a\'b'", "a'b"),
            ("\"it''s\"", "it''s"),
            ("'a' 'b'", "ab"),
            ("DATE '2020-01-05'", datetime.date(2020, 1, 5)),
            ("TIMESTAMP '2020-01-05 01:02:03.5'", datetime.datetime(2020, 1, 5, 1, 2, 3, 500000)),
            ("INTERVAL '7' DAY", 7 * DAY),
            ("INTERVAL 7 DAYS", 7 * DAY),
            ("INTERVAL '7 days'", 7 * DAY),
            ("INTERVAL 1 WEEK", 7 * DAY),
            ("INTERVAL -'2' DAY", -2 * DAY),
            ("INTERVAL '90' MINUTE", DAY / 16),
            ("INTERVAL 1 DAY 2 HOURS", DAY + DAY / 12),
            ("INTERVAL '1.5' SECOND", datetime.timedelta(seconds=1.5)),
            ("INTERVAL '1 02:03:04.5' DAY TO SECOND", datetime.timedelta(1, 7384, 500000)),
            ("INTERVAL '-1 02:00' DAY TO MINUTE", -datetime.timedelta(1, 7200)),
        ],
    )
    def test_literal(self, sql: str, expected: Any) -> None:
        found = value(sql)
        assert found == expected
        assert type(found) is type(expected)


class TestArithmetic:
    @pytest.mark.parametrize(
        ("sql", "expected"),
        [
            ("7 / 2", 3.5),
            ("7.5 / 2", Decimal("3.75")),
            ("-7 DIV 2", -3),
            ("2.5 DIV 1", 2),
            ("-7 % 3", -1),
            ("7 % -3", 1),
            ("MOD(-7.5D, 2)", -1.5),
            ("PMOD(-7, 3)", 2),
            ("PMOD(-7, -3)", -1),
            ("1.5 * 2.25", Decimal("3.375")),
            ("1.5 + 1e0", 2.5),
            ("'5' * 2", 10),
            ("5 - -3", 8),
            ("2 + 3 * 4", 14),
            ("(2 + 3) * 4", 20),
            ("INTERVAL '1' DAY * 1.5", 1.5 * DAY),
            ("INTERVAL '3' SECOND / 7", datetime.timedelta(microseconds=428571)),
            ("DATE '2020-01-02' - DATE '2020-01-01'", DAY),
            ("DATE '2020-01-31' + 1", datetime.date(2020, 2, 1)),
            ("DATE '2020-01-31' - 1", datetime.date(2020, 1, 30)),
            ("DATE '2020-01-31' + INTERVAL '1' DAY", datetime.date(2020, 2, 1)),
            ("INTERVAL '1' DAY + DATE '2020-01-31'", datetime.date(2020, 2, 1)),
            ("DATE '2020-01-31' + INTERVAL '1' HOUR", datetime.datetime(2020, 1, 31, 1)),
            ("DATE '2020-01-31' + INTERVAL '1' MONTH", datetime.date(2020, 2, 29)),
            ("DATE '2020-01-05' - INTERVAL '1' MONTH", datetime.date(2019, 12, 5)),
            ("TIMESTAMP '2020-01-31 10:00:00' + INTERVAL '1' YEAR", datetime.datetime(2021, 1, 31, 10)),
            ("TIMESTAMP '2020-01-02 00:00:00' - DATE '2020-01-01'", DAY),
        ],
    )
    def test_value_and_type(self, sql: str, expected: Any) -> None:
        found = value(sql)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize("sql", ["1 / 0", "1.0 / 0", "1e0 / 0", "1 DIV 0", "1 % 0", "PMOD(1, 0)"])
    def test_division_by_zero_raises_or_gives_null(self, sql: str) -> None:
        with pytest.raises(ExecutionError, match="BY_ZERO"):
            value(sql)
        assert value(sql, ansi=False) is None

    def test_null_operands_come_before_division_by_zero(self) -> None:
        assert value("NULL / 0") is None

    def test_integers_have_64_bits(self) -> None:
        with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
            value("9223372036854775807 + 1")
        assert value("9223372036854775807 + 1", ansi=False) == -(2**63)

    def test_decimals_are_exact(self) -> None:
        big = Decimal("12345678901234567890123456789.123456789")
        assert value("a + b", a=big, b=Decimal("1E-9")) == Decimal("12345678901234567890123456789.123456790")
        assert value("a * b", a=big, b=10) == Decimal("123456789012345678901234567891.234567890")

    def test_doubles_have_infinities_and_nan(self) -> None:
        assert value("1e308 * 10") == math.inf
        assert math.isnan(value("double('inf') % 2"))

    @pytest.mark.parametrize(
        "sql", ["DATE '2020-01-01' + 0.5", "TRUE + 1", "TIMESTAMP '2020-01-01 00:00:00' + 1"]
    )
    def test_operands_that_mean_nothing(self, sql: str) -> None:
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            value(sql)


class TestComparison:
    @pytest.mark.parametrize(
        "sql",
        [
            "double('NaN') = double('NaN')",
            "double('NaN') > double('inf')",
            "NOT double('NaN') < double('NaN')",
            "-0.0D = 0.0D",
            "0.1 = 0.1D",
            "1.50 = 1.5",
            "9007199254740993 = 9007199254740992D",
            "DATE '2020-01-01' < TIMESTAMP '2020-01-01 00:00:01'",
            "DATE '2020-01-01' = '2020-01-01'",
            "'10' = 10",
            "'abc' > 'B'",
            "TRUE > FALSE",
            "TRUE = 'true'",
            "INTERVAL '1' DAY = INTERVAL '24' HOUR",
            "INTERVAL '12' MONTH = INTERVAL '1' YEAR",
            "1 < 2 = TRUE",
        ],
    )
    def test_holds(self, sql: str) -> None:
        assert value(sql) is True

    def test_structs_and_arrays_compare_by_parts_with_nulls_first(self) -> None:
        assert value("a < b", a={"x": 1, "y": None}, b={"x": 1, "y": 2}) is True
        assert value("a = b", a={"x": None}, b={"x": None}) is True
        assert value("a < b", a=[1, 2], b=[1, 2, 0]) is True

    def test_types_that_do_not_compare(self) -> None:
        with pytest.raises(AnalysisError, match="DATATYPE_MISMATCH"):
            value("TRUE = 1")
        with pytest.raises(ExecutionError, match="CAST_INVALID_INPUT"):
            value("'abc' = 10")

    @pytest.mark.parametrize(
        ("text", "pattern", "expected"),
        [
            ("abc", "a%", T),
            ("ABC", "a%", F),
            ("a.c", "a.c", T),
            ("abc", "a.c", F),
            ("abc", "a_c", T),
            ("a\nb", "a%b", T),
            ("a_c", "a\\_c", T),
            ("abc", "a\\_c", F),
            (None, "a", N),
        ],
    )
    def test_like(self, text: Any, pattern: str, expected: Any) -> None:
        assert value("a LIKE b", a=text, b=pattern) is expected
        assert value("a NOT LIKE b", a=text, b=pattern) is (None if expected is None else not expected)

    def test_like_escape(self) -> None:
        assert value("'a%c' LIKE 'a!%c' ESCAPE '!'") is True
        assert value("'abc' NOT LIKE 'a!%c' ESCAPE '!'") is True
        with pytest.raises(ExecutionError, match="INVALID_FORMAT"):
            value("'ab' LIKE 'a!b' ESCAPE '!'")


class TestFunctions:
    @pytest.mark.parametrize(
        ("sql", "expected"),
        [
            ("CASE WHEN NULL THEN 1 WHEN TRUE THEN 2 END", 2),
            ("CASE 3 WHEN NULL THEN 1 WHEN 3 THEN 2 ELSE 4 END", 2),
            ("CASE WHEN FALSE THEN 1 / 0 END", None),
            ("IF(NULL, 1 / 0, 2)", 2),
            ("COALESCE(NULL, 1, 1 / 0)", 1),
            ("NVL(NULL, 3)", 3),
            ("IFNULL(NULL, 3)", 3),
            ("NVL2(NULL, 1, 2)", 2),
            ("NULLIF(1, 1.0)", None),
            ("NULLIF(1, NULL)", 1),
            ("GREATEST(1, NULL, 3)", 3),
            ("LEAST(NULL, NULL)", None),
            ("ISNULL(NULL)", True),
            ("ISNOTNULL(NULL)", False),
            ("ISNAN(NULL)", False),
            ("ISNAN(double('NaN'))", True),
            ("ABS(-2.5)", Decimal("2.5")),
            ("ABS(INTERVAL '-1' DAY)", DAY),
            ("SIGN(-3)", -1.0),
            ("FLOOR(-2.5)", Decimal(-3)),
            ("CEIL(2.1D)", 3),
            ("FLOOR(double('NaN'))", 0),
            ("ROUND(2.5)", Decimal(3)),
            ("ROUND(-2.5D)", -3.0),
            ("ROUND(1.005D, 2)", 1.01),
            ("ROUND(-15, -1)", -20),
            ("ROUND(25.5, -1)", Decimal(30)),
            ("ROUND(2.5, 3)", Decimal("2.5")),
            ("LENGTH('héllo')", 5),
            ("UPPER('é')", "É"),
            ("LOWER('ABC')", "abc"),
            ("CONCAT('a', 1, NULL)", None),
            ("CONCAT(1.50, TRUE)", "1.50true"),
            ("1e10 || DATE '2020-01-01'", "1.0E102020-01-01"),
            ("SUBSTRING('hello', 0, 2)", "he"),
            ("SUBSTRING('hello', -3, 2)", "ll"),
            ("SUBSTRING('hello', 2)", "ello"),
            ("SUBSTRING('hello', -10, 7)", "he"),
            ("DATEDIFF(DATE '2020-03-01', '2020-02-01')", 29),
            ("DATE_DIFF(TIMESTAMP '2020-03-01 23:00:00', '2020-02-29')", 1),
            ("DATE_ADD(TIMESTAMP '2020-03-01 23:00:00', 1)", datetime.date(2020, 3, 2)),
            ("DATE_SUB('2020-03-01', 1)", datetime.date(2020, 2, 29)),
            ("YEAR('2020-05-06') + MONTH('2020-05-06') + DAY('2020-05-06')", 2031),
            ("DAYOFWEEK(DATE '2020-05-03')", 1),
        ],
    )
    def test_value(self, sql: str, expected: Any) -> None:
        found = value(sql)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("sql", "expected"),
        [
            ("CAST(' 12 ' AS INT)", 12),
            ("CAST(-1.7D AS INT)", -1),
            ("CAST(TRUE AS BIGINT)", 1),
            ("CAST('1.5d' AS DOUBLE)", 1.5),
            ("CAST('-inf' AS DOUBLE)", -math.inf),
            ("CAST(0.1 AS FLOAT)", 0.10000000149011612),
            ("CAST(1.005D AS DECIMAL(5, 2))", Decimal("1.01")),
            ("CAST('t' AS BOOLEAN)", True),
            ("CAST('2020' AS DATE)", datetime.date(2020, 1, 1)),
            ("CAST('2020-01-01 10:00:00' AS DATE)", datetime.date(2020, 1, 1)),
            ("CAST('2020-01-01T10:00' AS TIMESTAMP)", datetime.datetime(2020, 1, 1, 10)),
            ("CAST(12345678.9D AS STRING)", "1.23456789E7"),
            ("CAST(0.001D AS STRING)", "0.001"),
            ("CAST(-0.0D AS STRING)", "-0.0"),
            ("CAST(0.0000001 AS STRING)", "0.0000001"),
            ("CAST(TIMESTAMP '2020-03-01 23:00:00.120' AS STRING)", "2020-03-01 23:00:00.12"),
            ("TRY_CAST('x' AS INT)", None),
            ("TRY_CAST(300 AS TINYINT)", None),
            ("1::STRING", "1"),
        ],
    )
    def test_cast(self, sql: str, expected: Any) -> None:
        found = value(sql)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("sql", "condition", "otherwise"),
        [
            ("CAST('1.5' AS INT)", "CAST_INVALID_INPUT", 1),
            ("CAST('x' AS DOUBLE)", "CAST_INVALID_INPUT", None),
            ("CAST('2020-02-30' AS DATE)", "CAST_INVALID_INPUT", None),
            ("CAST(3000000000 AS INT)", "CAST_OVERFLOW", 3000000000 - 2**32),
            ("CAST(1e20D AS INT)", "CAST_OVERFLOW", 2**31 - 1),
            ("CAST(double('NaN') AS INT)", "CAST_OVERFLOW", 0),
            ("CAST(123456 AS DECIMAL(5, 2))", "NUMERIC_VALUE_OUT_OF_RANGE", None),
            ("FLOOR(1e20D)", "ARITHMETIC_OVERFLOW", 2**63 - 1),
        ],
    )
    def test_what_a_type_cannot_hold(self, sql: str, condition: str, otherwise: Any) -> None:
        with pytest.raises(ExecutionError, match=condition):
            value(sql)
        assert value(sql, ansi=False) == otherwise


class TestRefusals:
    @pytest.mark.parametrize(
        ("sql", "named"),
        [
            ("rand() < 0.5", "RAND"),
            ("my_udf(a)", "my_udf"),
            ("SUM(a)", "SUM"),
            ("a IN (SELECT 1)", "SELECT"),
            ("a RLIKE 'x'", "RLIKE"),
            ("a[0]", "a[0]"),
            ("a & 1", "&"),
            ("s.*", "s.*"),
            (":p = 1", ":p"),
            ("CAST(a AS BINARY)", "BINARY"),
            ("FLOOR(a, 2)", "FLOOR"),
            ("DATEDIFF(MONTH, a, b)", "MONTH"),
            ("INTERVAL '1 fortnight'", "INTERVAL"),
            ("a b", "a b"),
            ("SELECT 1", "SELECT 1"),
        ],
    )
    def test_what_is_not_known_is_named_when_compiled(self, sql: str, named: str) -> None:
        with pytest.raises(NotSupportedError, match="REFERENCE_EXPRESSION") as error:
            compile_expression(sql)
        assert named.lower() in error.value.message.lower()

    @pytest.mark.parametrize(
        "sql", ["'a' || 1 + 2", "1 = 2 < 3", "TRUE = 1 IN (1)", "TRUE = 1 NOT BETWEEN 1 AND 2"]
    )
    def test_what_spark_groups_otherwise_needs_parentheses(self, sql: str) -> None:
        with pytest.raises(NotSupportedError, match="without parentheses"):
            compile_expression(sql)
