"""The page's tables of messages of the server have every warning, and nothing that the code does not write."""

import ast
import re
from importlib.resources import files
from itertools import chain
from pathlib import Path

from bitext.documents.document import KINDS
from translucid.inspection.rendering.message_catalogs import messages_of_script

TRANSLUCID = Path(str(files("translucid")))
BITEXT = Path(str(files("bitext")))
SCRIPT = (TRANSLUCID / "serving/page/server_messages.js").read_text(encoding="utf-8")
PROPER_NAMES = {"PO", "XLIFF", "TMX", "HTML", "Markdown", "Word", "PowerPoint", "Excel", "EPUB", "Fluent"}
WITH_WARNINGS = ("api", "data", "decoding", "engines", "terminology", "evaluation")
WITHOUT_WARNINGS = {"report.py"}
KIND = re.compile(r"(\{\}|[a-z][a-z ]*): .")
SHORT = ["1 word for 4", "3 words for 40", "0 words for 8"]
VALUES = {  # of templates whose values are parts of messages
    "{}: the model has never seen {}": [
        "capitals: the model has never seen Á É",
        "lower case: the model has never seen ñ",
    ],
    "capitals: the model has hardly seen words {}; lower case may do better": [
        "capitals: the model has hardly seen words in capitals; lower case may do better",
        "capitals: the model has hardly seen words that begin with capitals; lower case may do better",
    ],
    "form of address: {}, not {}": ["form of address: formal, not informal", "form of address: informal, not formal"],
    "improbable: the model has hardly learned such sentences ({})": [
        "improbable: the model has hardly learned such sentences (log-probability -4.1 a token, -0.7 in validation)"
    ],
    "too long: {}": [f"too long: {words}" for words in SHORT],
    "too short: {}": [f"too short: {words}" for words in SHORT],
    "too short: {} for {}": ["too short: 1 sentence for 3", "too short: 2 sentences for 3"],
    "wrong language: {} looks like {}, not {}": [
        "wrong language: the source looks like es, not en",
        "wrong language: the translation looks like es, not en",
    ],
    "{}: {}": ["lost: ⟨1⟩ 3.5", "invented: %s"],
}


def table(name):
    """Return the messages of a table of the script."""
    start = SCRIPT.index(f"const {name} = [")
    return [message.source for message in messages_of_script(SCRIPT[start : SCRIPT.index("\n];", start)], name)]


def pattern(message):
    """Return the pattern of a message with names in braces."""
    return re.compile("(.+?)".join(map(re.escape, re.split(r"\{\w*\}", message))), re.DOTALL)


def template(node):
    """Return a string, or an f-string with `{}` in place of its values; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def warnings_in(tree):
    """Yield the templates `kind: details` that a module yields, appends, returns in a list, or adds as doubts."""
    for node in ast.walk(tree):
        values = []
        if isinstance(node, ast.Yield | ast.Return) and node.value:
            values = [node.value]
            for part in ast.walk(node.value):
                values += part.elts if isinstance(part, ast.List) else []
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                values = node.args
            for keyword in node.keywords:
                values += getattr(keyword.value, "elts", []) if keyword.arg == "doubts" else []
        for text in map(template, values):
            if text and KIND.match(text):
                yield text


def test_every_warning_of_the_code_is_in_the_table_and_no_other():
    templates = set()
    modules = [(TRANSLUCID / folder).rglob("*.py") for folder in WITH_WARNINGS]
    for file in chain((BITEXT / "documents").glob("*.py"), *modules):
        code = file.read_text(encoding="utf-8")
        if file.name not in WITHOUT_WARNINGS and re.search("warning|doubt", code):
            templates.update(warnings_in(ast.parse(code)))
    assert len(templates) > 20 and VALUES.keys() <= templates, VALUES.keys() - templates
    samples = []
    for text in templates:
        samples += VALUES.get(text, [text.replace("{}", "7")])
    messages = table("WARNINGS")
    recognized = {sample: [m for m in messages if pattern(m).fullmatch(sample)] for sample in samples}
    assert [sample for sample, found in recognized.items() if not found] == []
    assert set(messages) == {message for found in recognized.values() for message in found}


def test_every_kind_of_document_is_in_the_table():
    assert sorted(table("KINDS")) == sorted({kind.name for kind in KINDS} - PROPER_NAMES)


def test_errors_are_those_of_the_code():
    modules = [
        (TRANSLUCID / folder).rglob("*.py") for folder in ("serving", "inspection", "captions", "live", "language")
    ]
    sources = [*chain.from_iterable(modules), TRANSLUCID / "interop/web/export.py"]
    code = " ".join(file.read_text(encoding="utf-8") for file in [*sources, *(BITEXT / "documents").rglob("*.py")])
    code = re.sub(r'"\s+f?"', "", code)  # strings in several parts
    missing = []
    for message in table("ERRORS"):
        for sentence in re.split(r"(?<=\.) (?=[A-Z])", message.removeprefix("{file}: ")):
            known = re.sub(r"requests a (minute|day)$", "requests a {period}", sentence.removesuffix("."))
            words = r"\{[^{}]+\}".join(map(re.escape, re.split(r"\{\w+\}", known)))
            if not re.search(rf'["\s]{words}[".\s]', code):
                missing.append(sentence)
    assert missing == []
