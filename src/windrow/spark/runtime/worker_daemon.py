"""The process from which Spark forks Python workers in sessions that Windrow makes.

It is PySpark's, but for what a worker says whose rows nobody reads any more, as when a LIMIT has enough or a
query is stopped: PySpark has it write a trace to the user's terminal. The loss of the connection is Java's
own doing, which tells of what it has not brought about itself.
"""

from __future__ import annotations

import socket

from pyspark import daemon

__all__ = ["worker"]

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve tasks over a connection until it ends; the worker's exit code."""
    try:
        return _worker(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        return 1  # it is not to be used again


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
