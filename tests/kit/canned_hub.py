"""A hub that answers from a table, for commands that are run as a person runs them.

What it answers need not be what a real one would take: it stands for whoever wrote it there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

_KUBECONFIG = """
current-context: here
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}/clusters/{workspace}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
"""


@contextmanager
def canned_hub(folder: Path, workspace: str, answers: Mapping[str, Any]) -> Iterator[Path]:
    """Serve *answers* by path; yields a kubeconfig in *workspace*.

    A Status is answered with its code; anything that is not listed is not found.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            missing = {"kind": "Status", "code": 404, "reason": "NotFound", "message": self.path}
            found = answers.get(self.path.partition("?")[0], missing)
            body = json.dumps(found).encode()
            self.send_response(found["code"] if found.get("kind") == "Status" else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        kubeconfig = folder / "hub.kubeconfig"
        text = _KUBECONFIG.format(port=server.server_port, workspace=workspace)
        kubeconfig.write_text(text)
        try:
            yield kubeconfig
        finally:
            server.shutdown()
