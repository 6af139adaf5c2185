"""What Spark's analyser says of texts and plans, and what Arrow computes of them in Spark's place."""
