"""The environments that are tried, and what is tried in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["AREAS", "ENVIRONMENTS", "Environment"]

AREAS: Mapping[str, tuple[str, ...]] = {
    "syntax": ("tests/syntax",),
    "`WINDOW BY`": ("tests/spark/windows/test_types.py",),
    "`MATCH_RECOGNIZE`": ("tests/spark/patterns/test_pattern_examples.py",),
    "windows of time": ("tests/spark/relations/test_table_functions.py",),
    "CQL": ("tests/spark/relations/test_late.py::test_random_logs",),
    "`EMIT`": (
        "tests/spark/relations/test_versions.py::test_each_row_is_joined_with_what_was_valid_then_as_far_as_is_known",
    ),
    "live": (
        "tests/live/queries/test_query.py::test_changes_leave_with_the_bound_that_allows_them",
        "tests/live/clauses/test_sequences.py::test_a_named_stream_is_read_as_recorded_and_live",
        "tests/live/input/test_computed.py::test_expressions_have_sparks_values",
        "tests/live/input/test_computed.py::test_look_ups_in_small_tables_have_sparks_rows",
        "tests/live/input/test_direct_input.py",
    ),
    "named streams": ("tests/live/queries/test_named.py::test_a_query_runs_over_what_is_recorded_and_live",),
    "errors": (
        "tests/spark/sessions/test_errors.py::test_every_way_to_look_at_a_relation_tells_errors_alike",
    ),
}
"""What is tried, and by which tests."""

_SHORT = ("syntax", "CQL", "live")


@dataclass(frozen=True)
class Environment:
    """An environment.

    Attributes
    ----------
    name
        That it has in the table.
    python
        The version of Python.
    packages
        What pip is asked for beside the package itself.
    areas
        What is tried.
    resolution
        Which versions are taken of what the package needs: ``highest`` or ``lowest-direct``.
    first
        A module that is imported before anything else.
    lacks
        Tests that cannot pass, by a part of their names, and why.
    """

    name: str
    python: str = "3.11"
    packages: tuple[str, ...] = ()
    areas: tuple[str, ...] = tuple(AREAS)
    resolution: str = "highest"
    first: str | None = None
    lacks: tuple[tuple[str, str], ...] = ()


_QUALIFY = ("QUALIFY", "QUALIFY before WINDOW BY, which Spark 4.2 is the first to have")

ENVIRONMENTS = (
    Environment(
        "PySpark 4.0",
        packages=("pyspark==4.0.*",),
        lacks=(
            ("collate UTF8_LCASE", "windows over collated texts, which Spark 4.0 fails to analyse"),
            ("test_a_variant_is_carried", "windows over variants"),
            _QUALIFY,
        ),
    ),
    Environment(
        "PySpark 4.1",
        packages=("pyspark==4.1.*",),
        lacks=(
            ("collate UTF8_LCASE", "windows over collated texts, which Spark 4.1 fails to analyse"),
            _QUALIFY,
        ),
    ),
    Environment("PySpark 4.2", packages=("pyspark==4.2.*",)),
    Environment("PySpark 4.3", packages=("pyspark==4.3.*",)),
    Environment("the lowest versions of all", resolution="lowest-direct", areas=_SHORT),
    Environment("Python 3.12", python="3.12", areas=_SHORT),
    Environment("Python 3.13", python="3.13", areas=_SHORT),
    Environment("Python 3.14", python="3.14", areas=_SHORT),
    Environment("the lowest sqlglot", packages=("sqlglot==30.0.*",), areas=_SHORT),
    Environment("compiled sqlglot", packages=("sqlglot[c]>=30,<31",), areas=_SHORT),
    Environment("sqlmesh, imported first", packages=("sqlmesh",), areas=_SHORT, first="sqlmesh"),
)
