"""Time-varying relations as DataFrames: the operators of a plan over whole logs, and changelogs."""
