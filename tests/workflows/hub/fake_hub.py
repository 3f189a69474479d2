"""A HuggingFace Hub on the loopback interface: what huggingface_hub asks for to create, upload and download models."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["FakeHub", "fake_hub"]

COMMIT = "c" * 40


class FakeHub:
    """Repositories by name, each with the bytes of its files."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.tokens: set[str] = set()
        self.address = ""


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

        def do_POST(self) -> None:
            hub.tokens.add(self.headers.get("Authorization", ""))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            hub.asked.append(f"POST {path}")
            if path == "/api/repos/create":
                about = json.loads(body)
                name = f"{about.get('organization') or 'me'}/{about['name']}"
                hub.repositories.setdefault(name, {})
                return self._answer({"url": f"{hub.address}/{name}"})
            if path == "/api/validate-yaml":
                return self._answer({"errors": [], "warnings": []})
            name, what = self._model(path)
            if what == "preupload":
                files = json.loads(body)["files"]
                modes = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]
                return self._answer({"files": modes})
            for line in body.decode().splitlines():  # a commit
                entry = json.loads(line)
                if entry["key"] == "file":
                    hub.repositories[name][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            return self._answer({"commitUrl": f"{hub.address}/{name}/commit/{COMMIT}", "commitOid": COMMIT})

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
            if file is not None:
                data = hub.repositories.get(file[1], {}).get(file[3])
                return self._missing() if data is None else self._send(data)
            name, what = self._model(path)
            files = hub.repositories.get(name)
            if files is None or what not in ("", "revision", "tree"):
                return self._missing()
            if what == "tree":
                entries = [
                    {"type": "file", "path": one, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for one, data in files.items()
                ]
                return self._answer(entries)
            siblings = [{"rfilename": one} for one in files]
            return self._answer({"id": name, "modelId": name, "sha": COMMIT, "private": False, "siblings": siblings})

        do_HEAD = do_GET

        def _model(self, path: str) -> tuple[str, str]:
            found = re.match(r"/api/models/([^/]+/[^/]+)/?([^/]*)", path)
            return (found[1], found[2]) if found else ("", "unknown")

        def _answer(self, value: Any) -> None:
            self._send(json.dumps(value).encode(), "application/json")

        def _missing(self) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send(self, data: bytes, kind: str = "application/octet-stream") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    return Handler
