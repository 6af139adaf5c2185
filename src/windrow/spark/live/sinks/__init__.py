"""The sinks of live queries."""
