"""Windows of OVER with patterns as other queries: before WINDOW BY, over joins and results, beside others."""
