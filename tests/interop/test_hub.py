"""Models of the Hugging Face Hub, served by a local imitation of the Hub."""

import json
import re
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.probes.foreign import marian_folder
from translucid import Translator
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.runs.run_folder import RunFolder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISIONS = {"main": COMMIT, "refs/pr/4": COMMIT, COMMIT: COMMIT}


class Hub(BaseHTTPRequestHandler):
    """The parts of the Hub's API for listing and downloading files."""

    folder: Path
    commit = COMMIT
    fetched: list[str]
    """The names of the files whose content was sent."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        path = self.path.partition("?")[0].replace("%2F", "/")
        if "/gated" in path:
            return self.send(b"", 403, {"X-Error-Code": "GatedRepo"})
        if not re.match(r"/(api/models/)?owner/\w+/", f"{path}/") or "/gone" in path:
            return self.send(b"", 404, {"X-Error-Code": "RepoNotFound"})
        if "/resolve/" in path:
            return self.send_file(self.folder / path.rpartition("/")[2])
        revision = path.partition("/revision/")[2] or "main"
        if revision not in REVISIONS:
            return self.send(b"", 404, {"X-Error-Code": "RevisionNotFound"})
        if "/tree/" in path:
            return self.send(json.dumps(self.files()).encode())
        record = {"id": "owner/opus", "sha": self.commit, "siblings": [{"rfilename": "config.json"}]}
        return self.send(json.dumps(record).encode())

    def files(self):
        return [
            {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": f"{file.name:0>40}"}
            for file in self.folder.iterdir()
        ]

    def send_file(self, file):
        if self.command == "GET":
            self.fetched.append(file.name)
        self.send(file.read_bytes(), 200, {"ETag": f'"{file.name}"', "X-Repo-Commit": self.commit})

    def send(self, content, status=200, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextmanager
def serve_hub(folder):
    handler = type("Here", (Hub,), {"folder": folder, "fetched": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model_folder = tmp_path_factory.mktemp("hub") / "opus"
    marian_folder(model_folder)
    for name in ("pytorch_model.bin", "tf_model.h5", "modeling_opus.py", "README.md"):
        (model_folder / name).write_text("may not be fetched")
    return model_folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Return a function that points the client to an address, as HF_ENDPOINT and HF_HOME do on import."""

    def point(address):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

    return point


def test_a_model_is_downloaded_once_without_what_could_be_executed(folder, hub, tmp_path):
    import_model(folder, tmp_path / "local")
    with serve_hub(folder) as server:
        hub(f"http://127.0.0.1:{server.server_port}")
        for name, revision in (("run", ""), ("again", "@refs/pr/4")):
            import_model(Path(f"hf:owner/opus{revision}"), tmp_path / name)
            provenance = json.loads(RunFolder(tmp_path / name).provenance_file.read_text())
            assert provenance == {"imported": f"hf:owner/opus{revision}", "commit": COMMIT, "kind": "MarianMT"}
        downloaded = server.RequestHandlerClass.fetched
    assert len(downloaded) == len({*downloaded})
    assert {Path(name).suffix for name in downloaded} == {".json", ".spm", ".safetensors"}
    model, expected = (Translator.load(tmp_path / name).translate("I sing").text for name in ("run", "local"))
    assert model == expected
    # The server is stopped by now, but the files are cached.
    import_model(Path("hf:owner/opus"), tmp_path / "offline")


def test_failed_downloads_are_reported_in_one_line(folder, hub, tmp_path):
    (tmp_path / "pickled").mkdir()
    for file in folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / "pickled" / file.name).write_bytes(file.read_bytes())
    with serve_hub(tmp_path / "pickled") as server:
        hub(f"http://127.0.0.1:{server.server_port}")
        for name, message in {
            "hf:owner/opus": "hf:owner/opus: has no safetensors, and pickled weights are not downloaded. Give a rev",
            "hf:owner/opus@v9": "hf:owner/opus@v9: has no revision 'v9'. Give a branch, a tag or a commit.",
            "hf:owner/gone": "hf:owner/gone: is not on the Hub. Check the name",
            "hf:owner/gated": "hf:owner/gated: may be downloaded only by users who accepted its conditions. Accept",
            "hf:opus": "hf:opus: is not of the form hf:owner/name",
            "hf:owner/o--p": "hf:owner/o--p: is not a name of a model",
        }.items():
            with pytest.raises(UserError, match=re.escape(message)):
                import_model(Path(name), tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    hub(f"http://127.0.0.1:{port}")
    with pytest.raises(UserError, match=r"hf:owner/other: can't be downloaded \(.*refused.*\)\. Check the connection"):
        import_model(Path("hf:owner/other"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "commit", ["../../../../evil", "/elsewhere/evil", "", "main", "0" * 39 + "g", "0" * 40 + "/.."]
)
def test_a_commit_that_is_a_path_writes_nothing(commit, folder, hub, tmp_path):
    with serve_hub(folder) as server:
        server.RequestHandlerClass.commit = commit
        hub(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(UserError, match="hf:owner/opus: has a commit that is no checksum"):
            import_model(Path("hf:owner/opus"), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("revision", ["a" * 5_000, "../../x", "main/../../x", ".x", "/x", ""])
def test_revisions_that_are_none(revision, tmp_path):
    with pytest.raises(UserError, match="is not of the form hf:owner/name"):
        import_model(Path(f"hf:owner/opus@{revision}"), tmp_path / "run")
