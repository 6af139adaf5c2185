"""Views of queries that put rows of whole streams together: each stands for its query where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from windrow.algebra.rewriting.expand import Expander
from windrow.errors import NotSupportedError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.naming import forget, is_free
from windrow.syntax.definitions.create_view import View
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.sqltext import quoted
from windrow.syntax.streams.other_dialects import Spelled
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["may_read_expanded", "remember_expanded", "with_expanded"]


def may_read_expanded(text: str, catalog: Catalog) -> bool:
    """Whether a text may read such a view."""
    lower = text.lower()
    return any(name in lower for name in catalog.expanded)


@contextmanager
def with_expanded(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The text with the queries of such views in their place; None if it reads none.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` where a query of WITH has a name that the view reads.
    """
    tokens = tokenize(text)
    expander = Expander(tokens, (), catalog.expanded)
    found = expander.text(0, len(tokens))
    if found.render().split() == text.split():  # names that are no relations here, or those of a WITH list
        yield None
        return
    _refuse_hidden(tokens, catalog)
    with gateway.instead(found) as read:
        yield read


def remember_expanded(
    gateway: Gateway, catalog: Catalog, written: Spelled, view: View, names: Sequence[str]
) -> None:
    """Store the query of such a view, of which these are the columns.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a query with parameters, or over tables that it declares to be streams.
    AnalysisError, ParseError
        As :func:`windrow.statements.naming.is_free`.
    """
    tokens = written.tokens
    first, last = view.body
    reads = any(
        tokens.is_symbol(at, ":") and tokens[at + 1].name in gateway.parameters
        for at in range(first, last - 1)
    )
    marks = any(first <= at < last for at in parameter_marks(tokens))
    if reads or marks or written.sources:
        what = "parameters" if reads or marks else "FROM STREAM"
        raise NotSupportedError(
            f"a view of whole streams with {what} is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(*view.body),
            hint="write the values instead; declare the streams first: CREATE STREAM, session.stream",
        )
    if not is_free(gateway, catalog, tokens, view, names):
        return
    text = Expander(tokens, catalog.streams, {}).text(*view.body).render()
    if view.columns:
        text = f"SELECT * FROM ({text}) AS v({', '.join(map(quoted, view.columns))})"
    name = view.name.lower()
    if Expander(tokenize(text), (), {name: ""}).leads_to_streams((0, len(tokenize(text)))):
        raise NotSupportedError(
            f"a view {view.name} that reads {view.name} is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(*view.body),
            hint="name it differently",
        )
    forget(gateway, catalog, name)
    catalog.expanded[name] = text


def _refuse_hidden(tokens: TokenList, catalog: Catalog) -> None:
    """Refuse queries of WITH that would be taken for what a view reads."""
    read = {
        token.name.lower()
        for at in range(len(tokens))
        if tokens[at].is_name and tokens[at].name.lower() in catalog.expanded
        for token in tokenize(catalog.expanded[tokens[at].name.lower()]).tokens
        if token.is_name
    }
    for at in range(len(tokens) - 2):
        is_listed = tokens[at].is_name and (tokens.word(at - 1) == "WITH" or tokens.is_symbol(at - 1, ","))
        is_query = tokens.word(at + 1) == "AS" and tokens.is_symbol(at + 2, "(")
        if is_listed and is_query and tokens[at].name.lower() in read:
            raise NotSupportedError(
                f"a query of WITH with the name {tokens[at].name}, which a view of the query reads, is not"
                " supported",
                condition="UNSUPPORTED_STREAM",
                sql=tokens.sql,
                span=tokens[at].span,
                hint="rename the query of WITH",
            )
