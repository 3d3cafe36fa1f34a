"""A hub on 127.0.0.1, as far as `huggingface_hub` asks: files by revision, ranges, large files, commits."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = ".safetensors"
"""Uploaded by the protocol of git LFS, as the hub decides for these files."""


class Hub:
    """Commits of one repository by their hash, and names of revisions."""

    def __init__(self, name):
        self.name, self.commits, self.refs = name, {}, {}
        self.objects, self.created, self.requests = {}, [], []
        self.breaks_once = set()
        """Files whose first answer ends after half of their bytes."""
        self.status = None
        """Answer everything with this."""

    def commit(self, files, *refs):
        content = b"".join(name.encode() + data for name, data in sorted(files.items()))
        sha = hashlib.sha1(content).hexdigest()
        self.commits[sha] = dict(files)
        self.refs |= dict.fromkeys(refs, sha)
        return sha

    @contextmanager
    def serve(self):
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self.address
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self._file(with_body=False)

    def do_GET(self):
        self._file(with_body=True)

    def do_PUT(self):
        body = self._body()
        self.hub.objects[self.path.removeprefix("/objects/")] = body
        self._answer(200)

    def do_POST(self):
        body, path = self._body(), self.path.split("?")[0]
        self.hub.requests.append(("POST", path, self.headers.get("Authorization")))
        if self.hub.status:
            return self._answer(self.hub.status, {"error": "no"})
        repository = f"/api/models/{self.hub.name}"
        if path == "/api/repos/create":
            self.hub.created.append(json.loads(body))
            return self._answer(200, {"url": f"{self.hub.address}/{self.hub.name}"})
        if path == "/api/validate-yaml":
            return self._answer(200, {"warnings": [], "errors": []})
        if path.startswith(f"{repository}/branch/"):
            self.hub.refs.setdefault(path.rpartition("/")[2], self.hub.refs["main"])
            return self._answer(200, {})
        if path.startswith(f"{repository}/preupload/"):
            return self._answer(200, {"files": [self._mode(file["path"]) for file in json.loads(body)["files"]]})
        if path == f"/{self.hub.name}.git/info/lfs/objects/batch":
            return self._answer(
                200, {"transfer": "basic", "objects": list(map(self._place, json.loads(body)["objects"]))}
            )
        if path.startswith(f"{repository}/commit/"):
            return self._commit(body, path.rpartition("/")[2])
        return self._answer(404, {"error": path})

    def _mode(self, path):
        return {"path": path, "uploadMode": "lfs" if path.endswith(LARGE) else "regular", "shouldIgnore": False}

    def _place(self, entry):
        href = f"{self.hub.address}/objects/{entry['oid']}"
        return {"oid": entry["oid"], "size": entry["size"], "actions": {"upload": {"href": href}}}

    def _commit(self, body, branch):
        files = dict(self.hub.commits.get(self.hub.refs.get(branch), {}))
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
        sha = self.hub.commit(files, branch)
        self._answer(200, {"commitUrl": f"{self.hub.address}/{self.hub.name}/commit/{sha}", "commitOid": sha})

    def _file(self, with_body):
        self.hub.requests.append((self.command, self.path, self.headers.get("Range")))
        if self.hub.status:
            return self._answer(self.hub.status, {"error": "no"})
        name, _, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        if name != self.hub.name:
            return self._answer(404, {"error": "no"}, {"X-Error-Code": "RepoNotFound"})
        sha = self.hub.refs.get(revision, revision)
        if sha not in self.hub.commits:
            return self._answer(404, {"error": "no"}, {"X-Error-Code": "RevisionNotFound"})
        if file not in self.hub.commits[sha]:
            return self._answer(404, {"error": "no"}, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": sha})
        content = self.hub.commits[sha][file]
        etag = hashlib.sha256(content).hexdigest()
        wanted = self.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", sha)
        self.send_header("Content-Length", str(len(content) - start))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not with_body:
            return None
        if file in self.hub.breaks_once:
            self.hub.breaks_once.remove(file)
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return None
        self.wfile.write(content[start:])
        return None

    def _body(self):
        length = self.headers.get("Content-Length")
        if length is not None:
            return self.rfile.read(int(length))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, status, value=None, headers=None):
        body = json.dumps(value or {}).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
