"""Analysis by Spark of texts and plans, and expressions that Arrow computes in Spark's place."""
