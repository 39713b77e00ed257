"""A large document through a running server's API while many clients translate: waiting times and memory.

    translucid serve runs/eng-spa &
    python -m benchmarks.served_documents --pid $! [--pages 500] [--clients 32] [--seconds 60]

The document is a generated .docx with ten sentences per page. First the clients translate alone, then beside the
document; after `--seconds` they stop and the document continues alone. Each response must equal the first one for its
text.
"""

import argparse
import io
import json
import statistics
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable

from benchmarks.serving_load import memory, report
from translucid.corpora.phrasebook import generate

SENTENCES = 10
"""The number of sentences of a page."""
_TYPES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_LINKS = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>
</Relationships>"""
_SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def document(pages: int) -> bytes:
    """Return a Word document of distinct sentences; one word of each paragraph is bold."""
    sentences = [pair.source for pair in generate(pages * SENTENCES, seed=7)]
    paragraphs = []
    for number, sentence in enumerate(sentences):
        first, _, rest = sentence.partition(" ")
        bold = f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{first}</w:t></w:r>'
        plain = f'<w:r><w:t xml:space="preserve"> {rest}</w:t></w:r>'
        end = '<w:r><w:br w:type="page"/></w:r>' if number % SENTENCES == SENTENCES - 1 else ""
        paragraphs.append(f"<w:p>{bold}{plain}{end}</w:p>")
    body = f'<w:document xmlns:w="{_SPACE}"><w:body>{"".join(paragraphs)}</w:body></w:document>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("[Content_Types].xml", _TYPES), ("_rels/.rels", _LINKS), ("word/document.xml", body)):
            archive.writestr(name, content)
    return file.getvalue()


def send(url: str, body: bytes, kind: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": kind}), timeout=300) as response:
        return response.read()


class Clients:
    """Each sends one sentence after the other."""

    def __init__(self, address: str, count: int) -> None:
        self.address, self.count = address, count
        self.texts = [pair.source for pair in generate(200, seed=3)]
        self.expected: dict[str, str] = {}
        self.wrong: list[str] = []

    def ask(self, text: str) -> str:
        body = json.dumps({"q": text, "source": "en", "target": "es"}).encode()
        return json.loads(send(f"{self.address}/translate", body, "application/json"))["translatedText"]

    def work(self, going: Callable[[], bool]) -> list[float]:
        """Run all clients for a while; return the seconds of each response."""
        times: list[float] = []

        def client(number: int) -> None:
            while going():
                text = self.texts[number % len(self.texts)]
                number += self.count
                before = time.perf_counter()
                try:
                    translation = self.ask(text)
                except OSError as error:
                    self.wrong.append(str(error))
                    continue
                times.append(time.perf_counter() - before)
                if self.expected.setdefault(text, translation) != translation:
                    self.wrong.append(text)

        threads = [threading.Thread(target=client, args=[number]) for number in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", default="http://127.0.0.1:5000")
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pid", type=int, required=True, help="process id of the server")
    arguments = parser.parse_args()
    clients, resident = Clients(arguments.address, arguments.clients), [memory(arguments.pid)]
    end = time.perf_counter() + arguments.seconds
    quiet = clients.work(lambda: time.perf_counter() < end)
    resident.append(memory(arguments.pid))
    print(report(f"{arguments.clients} clients alone", quiet, arguments.seconds, resident[-1]), flush=True)

    content = document(arguments.pages)
    boundary = "a-boundary-of-a-form"
    fields = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("source_lang", "EN"), ("target_lang", "ES"))
    )
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="large.docx"\r\n\r\n'
    form = fields.encode() + head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    started = time.perf_counter()
    response = json.loads(send(f"{arguments.address}/v2/document", form, f"multipart/form-data; boundary={boundary}"))
    key = json.dumps({"document_key": response["document_key"]}).encode()
    url = f"{arguments.address}/v2/document/{response['document_id']}"
    peak: list[float] = []
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(0.5):
            peak.append(memory(arguments.pid))
            state = json.loads(send(url, key, "application/json"))
            if state["status"] not in ("queued", "translating"):
                print(f"the document: {state['status']} after {time.perf_counter() - started:.0f} s", flush=True)
                finished.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    end = time.perf_counter() + arguments.seconds
    before = time.perf_counter()
    during_document = clients.work(lambda: time.perf_counter() < end and not finished.is_set())
    elapsed = time.perf_counter() - before
    now = json.loads(send(f"{url}", key, "application/json"))
    print(
        report(f"{arguments.clients} clients beside a document", during_document, elapsed, memory(arguments.pid)),
        flush=True,
    )
    print(f"then the document was {now['status']}, {now.get('seconds_remaining', 0)} s to go", flush=True)
    watcher.join()
    result = zipfile.ZipFile(io.BytesIO(send(f"{url}/result", key, "application/json"))).read("word/document.xml")
    bold = result.count(b"<w:b/>"), arguments.pages * SENTENCES
    time.sleep(4)
    figures = f"before {resident[1]:.0f}, most {max(peak):.0f}, after {memory(arguments.pid):.0f} MiB"
    print(f"{arguments.pages} pages, {bold[1]:,} sentences, {bold[0]:,} bold words; {figures}")
    print(f"errors or different responses: {len(clients.wrong)} {clients.wrong[:3]}")
    slower = statistics.median(during_document) / statistics.median(quiet)
    print(f"the clients' median response time is {slower:.2f} times that without the document")


if __name__ == "__main__":
    main()
