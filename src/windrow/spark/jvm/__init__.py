"""What is read of Spark beside its public interface: no module outside of this package knows of py4j.

Spark runs in Java, to which a classic session has a bridge. Spark Connect has none: what a function returns
there is said of each, and is None, or the like, where Connect does not say.
"""
