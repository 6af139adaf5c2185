"""Access to Spark beyond its public interface: only this package knows py4j.

Spark runs in Java, to which a classic session has a bridge. Spark Connect has none. Each function documents
its result there, which is None, or the like, if Connect does not provide it.
"""
