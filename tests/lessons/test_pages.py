"""The lesson pages: their code excerpts equal the sources, their script is complete, and their records fit them."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import translucid
from translucid.api.translator import Translator
from translucid.cli.main import run
from translucid.inspection.rendering.bundling import bundle
from translucid.lessons.lessons import LESSONS
from translucid.lessons.pages import EQUATIONS, PAGES, Excerpt, recorded, static_files
from translucid.lessons.recording import LESSON, PAIRS, SENTENCE, patching_sentence
from translucid.lessons.runs import Models

SOURCES = Path(translucid.__file__).parent.parent
NAMES = [lesson.name for lesson in LESSONS]


class Code(HTMLParser):
    """Collects all tags with their attributes, and the texts of `pre` elements."""

    def __init__(self, page):
        super().__init__()
        self.inside, self.texts, self.tags = "", [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "pre":
            self.inside = tag
            self.texts.append("")

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data):
        if self.inside:
            self.texts[-1] += data


@pytest.fixture(scope="module")
def files():
    return static_files()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_shown_code_equals_the_sources(lesson, files):
    page = Code(files[f"{lesson.name}.html"])
    shown = page.texts[-len(lesson.code) :]
    for name, text in zip(lesson.code, shown, strict=True):
        excerpt = Excerpt.of(name)
        lines = (SOURCES / excerpt.file).read_text(encoding="utf-8").splitlines()
        source_lines = lines[excerpt.line - 1 :][: len(text.splitlines())]
        assert [line.strip() for line in text.splitlines()] == [line.strip() for line in source_lines]
        assert name.split(":")[1].split(".")[-1] in text.splitlines()[0]
    assert 8 <= sum(len(text.splitlines()) for text in shown) <= 60
    before = [text for text in page.texts[: -len(lesson.code)] if text.startswith("def ")]
    assert before == [Excerpt.of(f"{EQUATIONS}:{name}").text for name in lesson.equations]


@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_has_its_parts_and_loads_nothing_else(name, files):
    text = files[f"{name}.html"]
    tags = Code(text).tags
    assert [tag for tag, _ in tags].count("math") >= 1
    assert [tag for tag, _ in tags].count("h1") == 1
    assert "<details><summary>Answer</summary>" in text
    linked = {
        attributes.get("src") or attributes.get("href") for tag, attributes in tags if tag in ("script", "link", "a")
    }
    assert linked <= {*files, f"records/{name}.js", "data:,"}
    assert not any(tag == "script" and "src" not in attributes for tag, attributes in tags)


CONSTANTS = {
    "alignment": {"4", "0", "1", "2015"},
    "beam": {"5", "1.5", "3", "10", "1"},
    "contributions": {"1", "2020", "2022", "12"},
    "layers": {"2020", "1", "0"},
    "masks": {"0", "1"},
    "memory": {"0", "8", "1", "2017"},
    "patching": {"2020", "0", "100"},
    "positions": {"20", "0", "2", "6.3"},
    "scale": {"0", "1", "1024"},
    "ablation": {"2013", "6", "0", "1"},
    "context": {"2013", "0"},
    "live": {"1"},
    "features": {"1"},
}
"""The numbers that the texts of lessons may have: of equations, of papers, of lessons and of the figure's controls."""


@pytest.mark.parametrize("name", NAMES)
def test_the_texts_contain_no_figure_of_a_model(name):
    """What a model computes is a fact of the record that the page shows, which its script writes."""
    text = (PAGES / "texts" / f"{name}.html").read_text(encoding="utf-8")
    text = re.sub(r"<(math|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<sub>.*?</sub>|<[^>]*>|&\w+;|\((?:[A-Z][\w. ]+ )?(?:19|20)\d\d\)|(?:19|20)\d\d\b", "", text)
    numbers = set(re.findall(r"\d+(?:[.,]\d+)*", text))
    assert numbers <= CONSTANTS.get(name, set())


@pytest.mark.parametrize("name", NAMES)
def test_a_text_has_three_choices_and_says_above_and_below_where_things_are(name):
    """The figure follows the lead, and the explanation and the question follow the figure."""
    text = (PAGES / "texts" / f"{name}.html").read_text(encoding="utf-8")
    choices = re.findall(r"<li( data-right)? data-message>", text.split("<!-- question -->")[1])
    assert len(choices) == 3 and sum(map(bool, choices)) == 1  # one choice is right
    lead, after = re.sub(r"<[^>!]*>", "", text).split("<!-- figure -->")
    assert "above" not in lead.replace("above 0", "")
    assert "below" not in after


def test_the_documentation_of_patching_shows_the_recorded_figures():
    page = (Path(__file__).parents[2] / "docs" / "interventions.md").read_text(encoding="utf-8")
    pair = json.loads(recorded("patching"))["sentences"][0]
    assert f'translucid patch runs/demo "{pair["clean"]}" "{pair["other"]}" --words {"/".join(pair["words"])}' in page
    odds = pair["log_odds"]
    assert f"{odds['clean']:+.2f} nats with CLEAN, {odds['other']:+.2f} with OTHER" in page
    (part, *_) = pair["parts"]
    for layer, carried in zip(part["layers"], part["carried"], strict=True):
        row = re.search(rf"^ *{layer} +([-\d ]+)$", page, flags=re.MULTILINE)
        assert row and row[1].split() == [str(round(100 * value)) for value in carried], layer


def test_the_sixteen_lessons(files):
    assert len(NAMES) == 16
    assert list(LESSON) == NAMES
    assert set(SENTENCE) == set(NAMES) - {"positions"}
    index = files["index.html"]
    assert all(f'href="{name}.html"' in index for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_packaged_records_have_the_fields_of_new_records(name, records):
    """The packaged records have the same fields as new ones, whose models are smaller."""

    def form(value):
        if isinstance(value, dict):
            return {key: form(field) for key, field in value.items() if "." not in key}
        if isinstance(value, list) and value:
            return [form(value[0])]
        return "number" if isinstance(value, int | float) else type(value).__name__

    assert form(json.loads(recorded(name))) == form(json.loads(records[name]))
    assert len(recorded(name)) < 300_000


def test_a_patched_state_changes_the_translation(lesson_runs):
    """Patching the noun's embedding of CLEAN into OTHER gives CLEAN's translation; equal embeddings change nothing."""
    demo = Translator.load(lesson_runs / "demo", "cpu", "torch")
    with torch.no_grad():
        for block in demo.model.decoder:
            block.cross_attention.output.weight.mul_(20)  # the barely trained model would hardly use the source
    texts = next(iter(PAIRS))
    record = patching_sentence(SimpleNamespace(demo=demo), " / ".join(texts))
    clean, other = record["translations"]
    assert clean != other
    assert record["moved"][0] == [other, clean, other, other, other]
    assert set(record["moved"][1]) > {other}


def test_a_bundle_runs_each_module_once_with_names_of_its_own(tmp_path):
    (tmp_path / "a.js").write_text(
        'import { one as first } from "./b.js";\nimport {\n  $,\n  two,\n} from "./c.js";\nconst own = 1;\n'
    )
    (tmp_path / "b.js").write_text('import { two } from "./c.js";\nconst own = 2;\nexport function one() {}\n')
    (tmp_path / "c.js").write_text("export const two = 2;\nexport class $ {}\n")
    text = bundle("a.js", [tmp_path])
    assert text.index("modules['c.js'] =") < text.index("modules['b.js'] =") < text.index("modules['a.js'] =")
    assert text.count("modules['c.js'] =") == 1
    assert 'const { one: first } = modules["b.js"];' in text
    assert 'const {\n  $,\n  two,\n} = modules["c.js"];' in text
    assert "return { one };" in text and "return { two, $ };" in text
    assert "import" not in text and "export" not in text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('import two from "./c.js";', "does not support import two"),
        ('import * as c from "./c.js";', r"does not support import \* as c"),
        ('import "./c.js";', "does not support import"),
        ("import { two } from './c.js';", "does not support import"),
        ('import { two } from "./c.js"', "does not support import"),
        ('import { two } from "../c.js";', "does not support import"),
        ('  import { two } from "./c.js";', "does not support import"),
        ('const c = await import("./c.js");', "does not support import"),
        ("export default 1;", "does not support export default"),
        ("export { two };", "does not support export"),
        ("export let two = 2;", "does not support export let"),
        ('export * from "./c.js";', "does not support export"),
        ('import { three } from "./c.js";', "a.js: c.js exports no three"),
        ('import { two, three as four } from "./c.js";', "c.js exports no three"),
        ('import { two } from "./d.js";', "a.js > d.js: no such module"),
        ('import { five } from "./b.js";', "a.js > b.js > a.js: needs itself"),
    ],
)
def test_what_the_bundler_does_not_support_is_an_error(tmp_path, line, problem):
    (tmp_path / "a.js").write_text(f"{line}\nexport const one = 1;\n")
    (tmp_path / "b.js").write_text('import { one } from "./a.js";\nexport const five = 5;\n')
    (tmp_path / "c.js").write_text("export const two = 2;\n")
    with pytest.raises(ValueError, match=problem):
        bundle("a.js", [tmp_path])


def test_the_bundled_script_has_no_imports_or_exports():
    text = static_files(LESSONS)["lessons.js"]
    assert not any(line.startswith(("import ", "export ")) for line in text.splitlines())


def test_lessons_saved_without_models_have_the_packaged_records(tmp_path, capsys, files):
    out = tmp_path / "lessons"
    assert run(["learn", "--runs", str(tmp_path / "none"), "--save", str(out)]) == 0
    assert "recorded" in capsys.readouterr().err
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert written == {*files, *(f"records/{name}.js" for name in NAMES)}
    assert json.dumps(json.loads(recorded("beam"))["sentences"][0]["text"]) in (out / "records/beam.js").read_text()
    assert run(["learn", "--runs", str(tmp_path / "none"), "--save", str(out)]) == 2
    assert run(["learn", "--runs", str(tmp_path / "none"), "--save", str(out), "--overwrite"]) == 0


def test_with_the_demo_alone_the_lessons_of_recurrent_translators_are_recorded(lesson_runs, records, tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    shutil.copytree(lesson_runs / "demo", tmp_path / "runs" / "demo")
    configuration = tmp_path / "runs" / "demo" / "config.yaml"
    text = configuration.read_text(encoding="utf-8")  # the search in the browser can't follow this rule:
    configuration.write_text(text.replace("no_repeat_ngram: 0", "no_repeat_ngram: 3"), encoding="utf-8")
    dictionary = tmp_path / "runs" / "demo" / "circuits" / "dictionary.safetensors"
    models = Models(tmp_path / "runs")
    assert models.trained() == ["demo"]
    assert [lesson.name for lesson in LESSONS if not models.has(lesson)] == ["bottleneck", "alignment", "context"]
    dictionary.write_bytes(dictionary.read_bytes()[:-8])
    (tmp_path / "runs" / "lessons").symlink_to(lesson_runs / "lessons")
    assert run(["learn", "--runs", str(tmp_path / "runs"), "--save", str(tmp_path / "lessons")]) == 0
    messages = capsys.readouterr().err
    assert "Lessons 1, 2, 13 show what was recorded" in messages
    demo = tmp_path / "runs" / "demo"
    assert f"Lessons 15, 16 show what was recorded. For sentences of your own: translucid features {demo}" in messages
    assert recorded("features") in (tmp_path / "lessons" / "records" / "features.js").read_text(encoding="utf-8")
    assert "the pages embed no translator: decoding.no_repeat_ngram=3" in messages
    assert "<iframe" not in (tmp_path / "lessons" / "heads.html").read_text(encoding="utf-8")
    assert recorded("bottleneck") in (tmp_path / "lessons" / "records" / "bottleneck.js").read_text(encoding="utf-8")
    assert recorded("heads") not in (tmp_path / "lessons" / "records" / "heads.js").read_text(encoding="utf-8")


def test_lessons_saved_with_models_have_the_records_of_the_models(lesson_runs, records, tmp_path):
    """The saved pages use the records beside the runs, which the fixture `records` has written."""
    assert run(["learn", "--runs", str(lesson_runs), "--save", str(tmp_path / "lessons")]) == 0
    assert records["heads"] in (tmp_path / "lessons" / "records" / "heads.js").read_text(encoding="utf-8")
    assert (tmp_path / "lessons" / "translator" / "index.html").is_file()
    assert "<iframe" in (tmp_path / "lessons" / "heads.html").read_text(encoding="utf-8")
