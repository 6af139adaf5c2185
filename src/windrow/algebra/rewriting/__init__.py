"""Rewrites of a query's text: pipes, views and named queries, changelogs as tables, time windows as SQL."""
