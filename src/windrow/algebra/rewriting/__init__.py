"""Changes of a query's text: pipes, views and named queries, changelogs as tables, windows of time as SQL."""
