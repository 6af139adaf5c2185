"""Java, the session that Windrow makes itself, Python workers, settings, and temporary folders."""
