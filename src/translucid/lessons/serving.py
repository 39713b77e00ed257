"""The recorded lessons on a local server, which needs no other package."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from translucid.ground.errors import UserError
from translucid.kernels.machine import require_pytorch
from translucid.lessons.lessons import LESSONS
from translucid.lessons.pages import record_script, recorded, static_files
from translucid.serving.server_options import PAGE_HEADERS, media_type_of

LESSONS_PATH = "/lessons/"
"""The path of the lessons on a server."""
TRANSLATOR = "../"
"""The path from there to the page of the models."""
HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-cache"}


def recorded_files(translator: str = "") -> dict[str, str]:
    """Return all files of the recorded lessons by path; the empty path is the list of lessons.

    `translator`: the address of a translator's page, if there is one.

    Raises:
        UserError: PyTorch is not installed, in which the excerpts of the lessons are written.
    """
    require_pytorch("reading the lessons, which show the code of models,")
    content = static_files(translator=translator)
    content[""] = content["index.html"]
    for lesson in LESSONS:
        content[f"records/{lesson.name}.js"] = record_script(lesson.name, recorded(lesson.name))
    return content


def recorded_server(port: int) -> ThreadingHTTPServer:
    """Return the server.

    Raises:
        UserError: the port is taken.
    """
    content = recorded_files()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/":
                self.send_response(302)
                self.send_header("Location", LESSONS_PATH)
                self.end_headers()
                return
            name = path.removeprefix(LESSONS_PATH)
            if path.startswith(LESSONS_PATH) and name in content:
                status, text, media_type = 200, content[name], media_type_of(path)
            else:
                status, text, media_type = 404, "There is nothing here.", "text/plain"
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{media_type}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            for header, value in HEADERS.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(body)

        # No line on standard error for each request.
        def log_message(self, *_: object) -> None:
            pass

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Answers)
    except OSError as error:
        raise UserError(f"can't listen on port {port} ({error.strerror})", fix="Choose another `port`.") from error
