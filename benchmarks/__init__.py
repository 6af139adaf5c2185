"""Windrow against its peers, query by query: ``python -m benchmarks``, described in docs/benchmarks.md.

=================== ====================================================================================
`data`              what is read: Parquet files, made once
`queries`           what is asked, once per system; the paper's nested loops are in `nested`
`systems`           who is asked
`comparisons`       who is compared with whom, and the ratio to reach
`check`             that the answers are the same
`timing`            rounds, and how large the data may be for the time that there is
`remote`, `memory`  sessions in processes of their own: numbers of cores, peaks of memory
`running`           all of this, in order
`results`, `report` what is kept of it, as JSON, as a table, as a page
=================== ====================================================================================
"""
