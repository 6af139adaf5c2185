"""Unsupported versions of PySpark, checked without importing PySpark."""

from __future__ import annotations

import importlib.metadata

from windrow.errors import UsageError

__all__ = ["check_version"]

_LOWEST = (4, 0)


def check_version(version: str | None = None) -> None:
    """Refuse a PySpark that is too old, before an import of something that it lacks.

    Parameters
    ----------
    version
        By default that of the installed package; a package on the path that is not installed has no known
        version.

    Raises
    ------
    UsageError
        ``PYSPARK_TOO_OLD``.
    """
    if version is None:
        found = next(iter(importlib.metadata.distributions(name="pyspark")), None)
        if found is None:
            return
        version = found.version
    if tuple(map(int, version.split(".")[:2])) < _LOWEST:
        raise UsageError(
            f"PySpark {version} is too old for Windrow",
            condition="PYSPARK_TOO_OLD",
            hint="pip install 'pyspark>=4.0,<4.4'; a cluster needs the same version of Spark",
        )
