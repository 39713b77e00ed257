"""`translucid mcp`, called by the client of the package `mcp`: over standard input and output, and in process."""

import asyncio
import io
import json
import os
import shlex
import sys

import pytest
from docx import Document

from translucid.api.translator import Translator
from translucid.cli import main
from translucid.serving.catalog import load
from translucid.serving.documents import DocumentJobs
from translucid.serving.edge.rate_limits import RateLimits
from translucid.serving.mcp_server import AgentTools, make_server
from translucid.serving.requests import RequestContext
from translucid.serving.server_options import ServerOptions
from translucid.terminology.glossary import Term

SPANISH = "Los niños leen un libro en el jardín de la casa."


@pytest.fixture
def ask(run):
    """Return a function that calls tools of a server in this process: ask([("translate", {...})], characters=10)."""

    from mcp import Client  # collecting tests is quicker without it

    def ask(calls, *runs, terms=(), **options):
        server_options = ServerOptions(**options)
        context = RequestContext(
            load(list(runs) or [str(run)], "cpu", server_options, terms=terms),
            server_options,
            RateLimits(server_options),
        )
        tools = AgentTools(context, DocumentJobs(context))

        async def talk():
            async with Client(make_server(tools)) as client:
                return [await client.call_tool(name, fields) for name, fields in calls]

        try:
            return asyncio.run(talk())
        finally:
            tools.close()

    return ask


def error_of(result):
    """Return the error message of a call; it is one line."""
    (content,) = result.content
    assert result.is_error and "\n" not in content.text
    return content.text


def test_standard_output_has_nothing_but_the_protocol(run, tmp_path):
    from mcp import Client, StdioServerParameters, stdio_client

    transcript = tmp_path / "wire"
    command = shlex.join([sys.executable, "-m", "translucid", "mcp", str(run)])
    shell = ["-c", f"{command} | tee {shlex.quote(str(transcript))}"]
    parameters = StdioServerParameters(command="sh", args=shell, env=dict(os.environ))

    async def talk():
        with (tmp_path / "log").open("w") as log:
            async with Client(stdio_client(parameters, errlog=log)) as client:
                tools = (await client.list_tools()).tools
                return tools, await client.call_tool("translate", {"text": "I like soccer", "target": "es"})

    tools, result = asyncio.run(talk())
    assert [tool.name for tool in tools] == ["translate", "translate_document", "look", "terms"]
    expected = Translator.load(run).translate("I like soccer").text
    assert result.structured_content == {"translation": expected, "source": "en", "target": "es"}
    assert "en → es" in (tmp_path / "log").read_text()
    lines = transcript.read_text().splitlines()
    assert len(lines) >= 3 and all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)


def test_a_form_of_address(ask, formality_run, tmp_path):
    text, file = "Do you like sports?", tmp_path / "a.txt"
    file.write_text(text, encoding="utf-8")
    fields = {"text": text, "target": "es", "formality": "formal"}
    document = {"path": str(file), "target": "es", "formality": "formal", "source": "en"}
    calls = [
        ("translate", fields),
        ("translate_document", document),
        ("translate", {**fields, "terms": {"sports": "vives"}}),
    ]
    first, second, informal = ask(calls, str(formality_run))
    expected = Translator.load(formality_run).with_formality("formal").translate(text).text
    assert first.structured_content["translation"] == expected
    assert not second.is_error and (tmp_path / "a.es.txt").read_text(encoding="utf-8") == expected
    assert informal.structured_content["warnings"] == ["form of address: informal, not formal"]


def test_texts(ask, run):
    two_paragraphs = "I sing.\n\nI like soccer."
    calls = [
        {"text": two_paragraphs, "target": "es"},
        {"text": SPANISH, "target": "es"},
        {"text": "I like soccer", "target": "es"},
    ]
    calls[2]["terms"] = {"soccer": "balompié"}
    named_call = {**calls[0], "source": " english", "target": "Spanish"}
    plain, unchanged, with_term, named = ask([("translate", fields) for fields in (*calls, named_call)])
    first, second = (Translator.load(run).translate(text).text for text in ("I sing.", "I like soccer."))
    assert plain.structured_content["translation"] == f"{first}\n\n{second}"
    assert (named.structured_content["source"], named.structured_content["target"]) == ("en", "es")
    assert unchanged.structured_content == {"translation": SPANISH, "source": "es", "target": "es"}
    assert "balompié" in with_term.structured_content["translation"]


def test_errors_are_one_line(ask):
    calls = [
        ("translate", {"text": "I sing.", "target": "xx"}),
        ("translate", {"target": "es"}),
        ("translate", {"text": "I sing and sing.", "target": "es"}),
        ("terms", {"text": "I sing.", "target": "es"}),
        ("look", {"text": "I sing.", "source": "es", "target": "es"}),
        ("nothing", {}),
    ]
    assert list(map(error_of, ask(calls, characters=10))) == [
        "xx is not supported",
        "text: Field required",
        "16 characters exceed the limit of 10",
        "there is no term list from en to es. Start `translucid mcp` with --terms FILE; it is for the first model.",
        "es is not supported",
        "Unknown tool: nothing",
    ]


def test_a_document_gets_a_new_file_beside_it(ask, run, tmp_path):
    file, result = tmp_path / "my notes.docx", tmp_path / "my notes.es.docx"
    document = Document()
    document.add_paragraph("I like soccer.")
    document.save(file)
    before = file.read_bytes()
    call = ("translate_document", {"path": str(file), "target": "es"})
    overwriting_call = ("translate_document", {**call[1], "overwrite": True})
    created, second = ask([call, call])
    assert created.structured_content["file"] == str(result) and created.structured_content["segments"] == 1
    (paragraph,) = Document(result).paragraphs
    assert paragraph.text == Translator.load(run).translate("I like soccer.").text
    assert file.read_bytes() == before
    assert error_of(second) == f"{result}: exists already. Rename it, or set overwrite to true."
    result.write_bytes(b"mine")
    assert error_of(ask([call])[0]) and result.read_bytes() == b"mine"
    overwriting_call[1]["path"] = file.as_uri()
    assert not ask([overwriting_call])[0].is_error and result.read_bytes() != b"mine"
    assert sorted(tmp_path.iterdir()) == [file, result]


def test_documents_that_cannot_be_translated(ask, tmp_path):
    picture, large = tmp_path / "a.png", tmp_path / "a.txt"
    picture.write_bytes(b"no text")
    large.write_text("I sing. " * 200)
    paths = [picture, large, tmp_path / "missing.txt"]
    calls = [("translate_document", {"path": str(path), "target": "es"}) for path in paths]
    kind, size, missing = map(error_of, ask(calls, file_bytes=1000))
    assert "is of no kind that is translated here" in kind and "more than 1000 bytes" in size
    (elsewhere,) = ask([("translate_document", {"path": "file://server/a.txt", "target": "es"})])
    assert error_of(elsewhere).startswith("file://server/a.txt: is on another machine")
    assert missing == f"{paths[2]}: is no file. Give the absolute path of a document."
    assert sorted(tmp_path.iterdir()) == [picture, large]


@pytest.mark.parametrize(
    "path", ["", "/", ".", "..", "~nobody-here/x.txt", "a\0b.txt", "x" * 5_000 + ".txt", "/x" * 3_000, "\ud800.txt"]
)
def test_paths_of_no_file(ask, path):
    message = error_of(ask([("translate_document", {"path": path, "target": "es"})])[0])
    assert message.endswith(": is no file. Give the absolute path of a document.") and len(message) < 300


def test_a_translation_is_never_written_through_a_link(ask, tmp_path):
    document, link, precious = tmp_path / "a.txt", tmp_path / "a.es.txt", tmp_path / "precious"
    document.write_text("I sing.")
    precious.write_text("mine")
    link.symlink_to(precious)
    for overwrite in (False, True):
        call = ("translate_document", {"path": str(document), "target": "es", "overwrite": overwrite})
        assert error_of(ask([call])[0]) == f"{link}: is a link, which is not followed. Remove the link."
    assert precious.read_text() == "mine" and link.is_symlink()


def test_terms_that_are_no_terms_are_refused_at_once(ask):
    fields = {"text": "I sing.", "target": "es", "source": "en"}
    for source, target in (("sing", "x" * 100_000), ("x" * 100_000, "canto")):
        message = error_of(ask([("translate", {**fields, "terms": {source: target}})])[0])
        assert message == "terms:1: has more than 500 characters. Terms are shorter."


class Kept(io.BytesIO):
    """Bytes that can be read after the file is closed."""

    def close(self):
        self.flush()


def test_lines_that_are_no_messages_are_answered(run, monkeypatch, capsys):
    lines = {
        b"hello": (None, -32700),
        b"[" * 100_000: (None, -32700),
        b'{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"a":"\\ud800"}}': (6, -32700),
        b"5": (None, -32600),
        b'{"jsonrpc":"2.0","id":7,"method":5}': (7, -32600),
        b'{"jsonrpc":"1.0","id":"a","method":"tools/list"}': ("a", -32600),
    }
    written = Kept()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines) + b"\n")))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written))
    assert main.run(["mcp", str(run)]) == 0
    answers = list(map(json.loads, written.getvalue().splitlines()))
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == list(lines.values())
    assert "Traceback" not in capsys.readouterr().err


def test_a_look_has_the_words_with_most_attention(ask, run):
    text = "I like soccer"
    (result,) = ask([("look", {"text": text, "target": "es"})])
    (sentence,) = result.structured_content["sentences"]
    (inspected,) = Translator.load(run).translate(text).inspect()
    weights = inspected.words().weights[:-1, :-1]
    assert [row["word"] for row in sentence["words"]] == inspected.target_words[:-1]
    for row, word_weights, (_, probability) in zip(
        sentence["words"], weights, inspected.word_probabilities(), strict=True
    ):
        assert row["probability"] == pytest.approx(probability, abs=1e-4)
        assert row["attention"][0]["word"] == text.split()[word_weights.argmax()]
        assert row["attention"][0]["weight"] == pytest.approx(word_weights.max().item(), abs=1e-4)
        assert len(row["attention"]) == 3


def test_a_look_shows_both_steps_of_a_pivot(ask, pivot_runs):
    calls = [("look", {"text": "I sing.", "source": "es", "target": "fr"})]
    (result,) = ask(calls, str(pivot_runs / "es-en"), str(pivot_runs / "en-fr"))
    record = result.structured_content
    assert record["pivot"] == "en" and record["sentences"][0]["translation"] == record["second_step"][0]["text"]


def test_terms(ask):
    fields = {"text": "I like soccer and music", "target": "es", "translation": "Me gusta el balompié"}
    term_list = [Term("soccer", "balompié"), Term("music", "melodía"), Term("dog", "can")]
    checked, plain = ask([("terms", fields), ("terms", {**fields, "translation": ""})], terms=term_list)
    rows = [{"term": "soccer", "translations": ["balompié"]}, {"term": "music", "translations": ["melodía"]}]
    assert plain.structured_content["terms"] == rows
    assert [row["outcome"] for row in checked.structured_content["terms"]] == ["used", "missing"]


def test_runs_that_do_not_translate(captioner_run, capsys):
    assert main.run(["mcp", str(captioner_run)]) == 2
    captured = capsys.readouterr()
    assert "none of the runs translates texts. Name at least one translator." in captured.err and not captured.out
