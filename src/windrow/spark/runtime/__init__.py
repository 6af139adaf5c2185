"""Java, Windrow's own Spark session, Python workers, settings, and temporary folders."""
