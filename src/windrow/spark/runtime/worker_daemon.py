"""The process from which Spark forks Python workers in sessions that Windrow makes.

It is PySpark's own, except for workers whose rows nobody reads any more, as after a LIMIT or a stopped query:
PySpark lets them print a traceback to the user's terminal. In that case Java has closed the connection on
purpose, and it reports all other failures itself.
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
