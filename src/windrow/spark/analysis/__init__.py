"""Spark's analysis of texts and plans, and expressions that Arrow computes in Spark's place."""
