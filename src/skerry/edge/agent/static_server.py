"""A small server of static files; what ``httpd`` stands for on a machine without images.

Runs as a process of its own (``python -I -S static_server.py ADDRESS PORT ROOT``). Serves GET
and HEAD below the root, one thread a connection, and logs requests in Apache's common form.
"""

from __future__ import annotations

import os
import signal
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class _Handler(SimpleHTTPRequestHandler):
    server_version = "skerry-static"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # A connection that says nothing is closed; a thread waits for it.
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        # In words of whoever asks, who has no say in what a terminal does that shows the log.
        asked = (format % args).encode("unicode_escape").decode()
        sys.stdout.write(f"{self.address_string()} - - [{self.log_date_time_string()}] {asked}\n")
        sys.stdout.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Serve until SIGTERM."""
    address, port, root = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    def handler(*parts: object) -> _Handler:
        return _Handler(*parts, directory=root)  # type: ignore[arg-type]

    with _Server((address, port), handler) as server:
        sys.stderr.write(f"serving {root} on port {port}\n")
        sys.stderr.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
