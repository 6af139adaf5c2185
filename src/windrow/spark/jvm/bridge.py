"""Java objects, and the errors of calls to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import convert_exception

__all__ = [
    "INTERRUPTED",
    "BridgeError",
    "JavaError",
    "LostError",
    "class_of",
    "is_of_java",
    "items_of",
    "messages",
    "reported_by_spark",
]


BridgeError: TypeAlias = Py4JError
"""A call fails: Java has ended, this version of Spark lacks the method, or one of the errors below."""
JavaError: TypeAlias = Py4JJavaError
"""Java has thrown an exception that PySpark has no class for."""
LostError: TypeAlias = Py4JNetworkError
"""Java has ended during a call. On Connect, gRPC's errors are PySpark exceptions."""
INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling: java.lang.InterruptedException"
"""Spark recognizes by this message that a function of a micro-batch was interrupted."""


def is_of_java(error: BaseException) -> bool:
    """Whether an error is a :data:`JavaError`."""
    return isinstance(error, Py4JJavaError)


def messages(error: JavaError) -> Iterator[str]:
    """Java's message of an error, then those of its causes."""
    cause: Any = error.java_exception
    while cause is not None:
        yield str(cause.getMessage() or class_of(cause))
        cause = cause.getCause()


def reported_by_spark(error: JavaError) -> PySparkException:
    """The first error with a condition among the causes of a Java exception, or else the whole."""
    cause: Any = error.java_exception
    first = found = convert_exception(cause)
    while cause is not None and not found.getCondition():
        found = convert_exception(cause)
        cause = cause.getCause()
    return found if found.getCondition() else first


def class_of(of: Any) -> str:
    """The name of an object's class, without its package."""
    return str(of.getClass().getSimpleName())


def items_of(found: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [found.apply(number) for number in range(found.size())]
