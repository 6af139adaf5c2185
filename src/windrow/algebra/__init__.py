"""The algebra of queries, as immutable nodes: windows over rows that Spark computes, read by SQL that Spark
runs.
"""
