"""The server of the page: for this machine alone, and for requests with the token in its address."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from windrow.errors import UsageError

__all__ = ["Page"]

_LOOPBACK = "127.0.0.1"
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{}'; connect-src 'self'; img-src data:"
)


class Page:
    """The page, served as long as it is entered as a context manager.

    Parameters
    ----------
    data
        Returns the current data of the page.
    port
        The port; 0 for any free one.
    most
        The greatest number of connections at once; further ones are closed.
    patience
        The seconds after which a silent connection is closed.

    Raises
    ------
    UsageError
        ``PORT_IN_USE``.
    """

    def __init__(
        self, data: Callable[[], Mapping[str, Any]], port: int = 0, *, most: int = 32, patience: float = 10.0
    ) -> None:
        self.token = secrets.token_urlsafe(16)
        try:
            self._server = _Server((_LOOPBACK, port), _handler(data, self.token, patience), most)
        except OSError as error:
            raise UsageError(
                f"cannot serve the page on port {port}: {error.strerror}",
                condition="PORT_IN_USE",
                hint="name another port with --ui-port, or leave --ui-port out for any free one",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="windrow page", daemon=True)

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{_LOOPBACK}:{self._server.server_port}/?token={self.token}"

    def __enter__(self) -> Page:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """A thread for each connection, up to a greatest number of connections."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], most: int) -> None:
        self._places = threading.BoundedSemaphore(most)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no further thread can be started
            self._places.release()
            raise

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            super().finish_request(request, client_address)
        finally:
            # before the connection is closed: its client may connect again at once
            self._places.release()


def _handler(
    data: Callable[[], Mapping[str, Any]], token: str, patience: float
) -> type[BaseHTTPRequestHandler]:
    page = files("windrow.cli.page").joinpath("page.html").read_text(encoding="utf-8")

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "windrow", ""
        timeout = patience

        def do_GET(self) -> None:
            try:
                address = urlsplit(self.path)
            except ValueError:
                self._answer(HTTPStatus.BAD_REQUEST, "text/plain", "there is no page at this address")
                return
            received = parse_qs(address.query).get("token", [""])[0]
            if not hmac.compare_digest(received.encode(), token.encode()):
                self._answer(HTTPStatus.FORBIDDEN, "text/plain", "the address lacks the token")
            elif address.path == "/":
                nonce = secrets.token_urlsafe(8)
                self._answer(HTTPStatus.OK, "text/html", page.replace("{{nonce}}", nonce), nonce)
            elif address.path == "/state":
                self._answer(HTTPStatus.OK, "application/json", json.dumps(data(), default=str))
            else:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is nothing here")

        def _answer(self, status: HTTPStatus, kind: str, text: str, nonce: str = "") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Content-Security-Policy", _POLICY.format(nonce))
            self.end_headers()
            with suppress(ConnectionError):  # the client has closed it
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            """Log nothing: stderr is for the queries."""

    return Handler
