"""Runs queries on Spark: only this package and the packages above it import pyspark."""
