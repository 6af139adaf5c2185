"""Views of queries with EMIT: in a query with EMIT each stands for its query, elsewhere for its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windrow.algebra.rewriting.expand import Expander
from windrow.errors import NotSupportedError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.tokens import TokenList

__all__ = ["emitting_text", "with_emitting_views"]


def emitting_text(catalog: Catalog, tokens: TokenList, body: Range, columns: str) -> str | None:
    """The query of a view with EMIT, or over such a view, to be stored; None for other views.

    It is empty if it has parameters, whose values only the view's table has.
    """
    views = {**catalog.texts, **catalog.emitting}
    expander = Expander(tokens, catalog.streams, views)
    emits = clauses_in(tokens, *body) or Expander(tokens, (), catalog.emitting).leads_to_streams(body)
    if not emits or not expander.leads_to_streams(body):
        return None
    marks = any(body[0] <= at < body[1] for at in parameter_marks(tokens))
    if marks or any(
        tokens.is_symbol(at, ":") and tokens[at + 1].is_name for at in range(body[0], body[1] - 1)
    ):
        return ""
    text = expander.text(*body).render()
    return f"SELECT * FROM ({text}) AS v{columns}" if columns else text


@contextmanager
def with_emitting_views(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, query: Range
) -> Iterator[str | None]:
    """The statement with the queries of such views in the place of their names; None if it reads none.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` of a view with parameters.
    """
    expander = Expander(tokens, (), catalog.emitting)
    if not expander.leads_to_streams(query):
        yield None
        return
    for at in range(*query):
        known = catalog.emitting.get(tokens[at].name.lower()) if tokens[at].is_name else None
        if known == "" and expander.leads_to_streams((at, at + 1)):
            raise NotSupportedError(
                f"a view {tokens[at].name} of a query with EMIT and parameters, in a query with EMIT, is not"
                " supported",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens[at].span,
                hint="write the values in the query of the view, or write that query in brackets instead",
            )
    with gateway.instead(expander.text(0, len(tokens))) as read:
        yield read
