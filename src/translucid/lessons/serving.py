"""The lessons as they were recorded, on a server of this machine alone, which needs no other package."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from translucid.ground.errors import UserError
from translucid.lessons.lessons import LESSONS
from translucid.lessons.pages import fixed_files, record_script, recorded
from translucid.serving.server_options import PAGE_HEADERS

PLACE = "/lessons/"
"""Where the lessons are on a server."""
TRANSLATOR = "../"
"""Where the page of the models is from there."""
HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-cache"}


def recorded_files(translator: str = "") -> dict[str, str]:
    """Return all files of the lessons as they were recorded, by path; the list of lessons is also that with no name.

    `translator`: where the page of a translator is, if there is one.
    """
    found = fixed_files(translator=translator)
    found |= {f"records/{lesson.name}.js": record_script(lesson.name, recorded(lesson.name)) for lesson in LESSONS}
    return {**found, "": found["index.html"]}


def recorded_server(port: int) -> ThreadingHTTPServer:
    """Return the server.

    Raises:
        UserError: the port is taken.
    """
    found = recorded_files()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/":
                self.send_response(302)
                self.send_header("Location", PLACE)
                self.end_headers()
                return
            text = found.get(path.removeprefix(PLACE)) if path.startswith(PLACE) else None
            body = (text or "There is nothing here.").encode()
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", f"{kind(path) if text else 'text/plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Answers)
    except OSError as error:
        raise UserError(f"can't listen on port {port} ({error.strerror})", fix="Choose another --port.") from error


def kind(name: str) -> str:
    """Return the type of a file by its name."""
    kinds = {"js": "text/javascript", "css": "text/css"}
    return kinds.get(name.rpartition(".")[2], "text/html")
