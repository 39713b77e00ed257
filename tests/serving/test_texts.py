"""Texts of requests: how they are split into sentences, where these are translated, how translations are joined."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from bitext.documents.document import Target
from bitext.documents.tagged_text import TaggedText
from translucid.data.document_context import Source
from translucid.serving import queue as batcher
from translucid.serving import texts
from translucid.serving.catalog import Served
from translucid.serving.queue import CHUNK_CHARACTERS, CHUNK_TEXTS, in_chunks
from translucid.serving.requests import ON_THE_LOOP, RequestTask, Usage, off_the_loop
from translucid.serving.server_options import ServerOptions
from translucid.serving.texts import LONGEST, SHORT, Layout, TextTranslation, by_language, with_terminology


@pytest.mark.parametrize(
    ("text", "sentences", "between"),
    [
        ("", [], [""]),
        (" \n\t ", [], [" \n\t "]),
        (
            " I sing.  You sing.\n\n\tShe sings \r\n",
            ["I sing.", "You sing.", "She sings"],
            [" ", "  ", "\n\n\t", " \r\n"],
        ),
        ("a\u2028b\vc", ["a", "b", "c"], ["", "\u2028", "\v", ""]),
    ],
)
def test_a_layout_has_sentences_and_the_white_space_between_them(text, sentences, between):
    layout = Layout.of(text, "en")
    assert (layout.sentences, layout.between) == (sentences, between)
    assert layout.fill(layout.sentences) == text
    assert layout.fill([f"<{sentence}>" for sentence in sentences]).count("<") == len(sentences)


def test_texts_and_lines_that_a_memory_has_are_not_split():
    layout_of_whole = Layout.of(" I sing. You sing.\n", "en", "I sing. You sing.".__eq__)
    assert (layout_of_whole.sentences, layout_of_whole.between) == (["I sing. You sing."], [" ", "\n"])
    calls = []

    def is_in_memory(part):
        calls.append(part)
        return part == "I sing. You sing."

    text = "\n\t I sing. You sing. \r\nWe sing. They sing.\n \nI sing."
    layout = Layout.of(text, "en", is_in_memory)
    assert layout.sentences == ["I sing. You sing.", "We sing.", "They sing.", "I sing."]
    assert layout.between == ["\n\t ", " \r\n", " ", "\n \n", ""]
    assert calls == [text.strip(), "I sing. You sing.", "We sing. They sing.", "I sing."]
    assert layout.fill("abcd") == "\n\t a \r\nb c\n \nd"


@pytest.mark.parametrize(
    ("text", "sentences", "between"),
    [
        ("x" * LONGEST, ["x" * LONGEST], ["", ""]),
        ("x" * (2 * LONGEST + 1), ["x" * LONGEST, "x" * LONGEST, "x"], [""] * 4),
        # The last space counts if it is in the second half of the limit, but not if it is in the first half.
        ("x" * 1000 + " " + "y" * 1500, ["x" * 1000, "y" * 1500], ["", " ", ""]),
        ("x" * 999 + " " + "y" * 1500, ["x" * 999 + " " + "y" * 1000, "y" * 500], [""] * 3),
        ("x" * 1999 + " " + "y" * 9, ["x" * 1999, "y" * 9], ["", " ", ""]),
        ("x" * 2000 + " " + "y" * 9, ["x" * 2000, " " + "y" * 9], [""] * 3),
        ("ab " * 900 + "end", [("ab " * 666).strip(), "ab " * 234 + "end"], ["", " ", ""]),
    ],
)
def test_a_long_sentence_is_cut_at_a_space_if_it_can_be(text, sentences, between):
    assert LONGEST == 2000
    layout = Layout.of(f"{text}\n", "en")
    assert (layout.sentences, layout.between) == (sentences, [*between[:-1], between[-1] + "\n"])


def test_each_language_is_translated_once_and_results_keep_their_order():
    calls = []

    async def translate(code, batch):
        calls.append((code, batch))
        return [f"{code} {text}" for text in batch]

    translated = asyncio.run(by_language(["a", "b", "c", "d"], ["en", "de", "en", "fr"], translate))
    assert translated == ["en a", "de b", "en c", "fr d"]
    assert calls == [("en", ["a", "c"]), ("de", ["b"]), ("fr", ["d"])]
    assert asyncio.run(by_language([], [], translate)) == []


def test_short_requests_are_batched_and_longer_ones_go_to_the_worker_pool(monkeypatch):
    monkeypatch.setattr(texts, "translate", lambda *arguments: arguments)
    queue = SimpleNamespace(submit=lambda *arguments: ("batched", *arguments))
    pool = SimpleNamespace(submit=lambda task, work: ("pool", task, work()))
    task = SimpleNamespace(context=SimpleNamespace(worker_pool=pool))
    served = Served("", "en", "es", "translator", queue)
    assert SHORT == 600
    short = [Source("x" * 300), Source("y" * 300)]
    long = [*short[:1], Source("y" * 301)]
    assert texts.queue_sentences(task, served, short) == ("batched", task, "translator", short, 1)
    assert texts.queue_sentences(task, served, long, 3) == ("pool", task, ("translator", long, 3))


def test_short_texts_are_processed_on_the_event_loop(monkeypatch):
    async def in_thread(work):
        return "elsewhere", work()

    monkeypatch.setattr("translucid.serving.requests.run_in_threadpool", in_thread)
    assert ON_THE_LOOP == 2000
    assert asyncio.run(off_the_loop(2000, lambda: 1)) == 1
    assert asyncio.run(off_the_loop(2001, lambda: 1)) == ("elsewhere", 1)


def test_terms_are_applied_by_another_translator_of_the_same_model():
    translator = SimpleNamespace(with_terms=lambda terms: ("with", dict(terms)))
    served = Served("tiny", "en", "es", translator, "batcher")
    assert with_terminology(served, {}) is served
    assert with_terminology(served, {"a": "b"}) == Served("tiny", "en", "es", ("with", {"a": "b"}), "batcher")


def test_parts_of_long_requests():
    assert (CHUNK_TEXTS, CHUNK_CHARACTERS) == (64, 1000)
    assert list(in_chunks([], len)) == []
    lengths = [400, 600, 1, 1000, 1001, 2, 3]
    assert list(in_chunks(lengths, int)) == [[400, 600], [1], [1000], [1001], [2, 3]]
    assert [len(part) for part in in_chunks([0] * 130, int)] == [64, 64, 2]


def context_of():
    """Return a server context, and the list of its pool's tasks."""
    tasks = []

    def submit(task, work):
        future = Future()
        future.set_result(work())
        tasks.append(task)
        return future

    return SimpleNamespace(worker_pool=SimpleNamespace(submit=submit), usage=Usage()), tasks


def memory_of(known):
    """Return a memory that contains these translations."""

    def replacement(text):
        return SimpleNamespace(target=known[text]) if text in known else None

    return SimpleNamespace(recall_with=lambda formality: SimpleNamespace(replacement=replacement))


class Model:
    """A translator that writes capitals and loses placeholders in braces; `nbest` versions of each text."""

    context = retrieval = formality = None
    protected = ()

    def __init__(self):
        self.calls = []

    def submit(self, task, translator, sources, nbest):
        sentences = [source.text for source in sources]
        self.calls.append((sentences, nbest))
        future = Future()
        future.set_result([self.translation(sentence, nbest) for sentence in sentences])
        return future

    @staticmethod
    def translation(sentence, nbest):
        best = sentence.upper().replace("{A}", "")
        versions = [best, *(f"{sentence.upper()}{i}" for i in range(1, nbest))]
        return SimpleNamespace(source=sentence, text=best, alternatives=versions)

    @property
    def quality(self):
        return SimpleNamespace(assessed=self.assessed)

    def assessed(self, translations):
        for translation in translations:
            translation.confidence = 0.5 if "b" in translation.source else 0.25
            yield translation


@pytest.fixture
def ask(monkeypatch):
    """Return a function that translates texts with a model that writes capitals and with a memory of `known` pairs."""

    def translated_again(served, sources, nbest):
        for source, *_ in sources:
            alternatives = tuple(TaggedText(f"{source.text} {i}") for i in range(nbest - 1))
            yield Target(TaggedText(f"again {source.text}"), "model", 0.125, alternatives=alternatives)

    monkeypatch.setattr(texts, "translated", translated_again)

    def translate(*arguments, known=None, **options):
        ask.model = Model()
        context, ask.tasks = context_of()
        context.options = ServerOptions()
        memory = memory_of(known) if known is not None else None
        served = Served("tiny", "en", "es", ask.model, ask.model, memory)
        request = SimpleNamespace(receive=lambda: asyncio.sleep(60), scope={})
        return asyncio.run(
            texts.translate_texts(RequestTask(context, request, "somebody"), served, *arguments, **options)
        )

    def ask(*arguments, **options):
        return translate(*arguments, **options)

    return ask


def test_translations_of_texts_without_a_memory(ask):
    assert ask(["I sing. You run.", "", " be "]) == [
        TextTranslation(["I SING. YOU RUN."]),
        TextTranslation([""]),
        TextTranslation([" BE "]),
    ]
    assert ask.model.calls == [(["I sing.", "You run.", "be"], 1)] and not ask.tasks
    assert ask(["", "\n"]) == [TextTranslation([""]), TextTranslation(["\n"])]
    assert ask.model.calls == []


def test_alternatives_of_a_text_join_those_of_its_sentences(ask):
    (text,) = ask(["I sing. You run."], 2)
    assert text.versions == ["I SING. YOU RUN.", "I SING.1 YOU RUN.1", "I SING.2 YOU RUN.2"]
    assert ask.model.calls == [(["I sing.", "You run."], 3)]


def test_the_confidence_of_a_text_is_the_lowest_of_its_sentences(ask):
    assert [text.confidence for text in ask(["I be. You run.", "be", ""], with_confidence=True)] == [0.25, 0.5, None]
    assert [text.confidence for text in ask(["be"])] == [None]


def test_a_sentence_without_its_placeholder_is_translated_again(ask):
    assert ask(["I {a} be. You run."], with_confidence=True) == [TextTranslation(["again I {a} be. YOU RUN."], 0.125)]
    (text,) = ask(["I {a}."], 2)  # the first translation has no {a}
    assert text.versions == ["again I {a}.", "I {a}. 0", "I {a}. 1"]
    assert texts._from_target(Target(TaggedText("a"), "model", 0.5, alternatives=(TaggedText("b"),)), ["c", "a"]) == (
        TextTranslation(["a", "b", "c"], 0.5)
    )


def test_exact_matches_of_the_memory_are_not_translated(ask):
    known = {"I sing.": "Canto.", "You run. We run.": "Corren."}
    results = ask(["I sing. You run.", "I sing.", "You run. We run.", "we run\nYou run. We run."], known=known)
    assert results == [
        TextTranslation(["Canto. YOU RUN."], None, "mixed"),
        TextTranslation(["Canto."], None, "memory"),
        TextTranslation(["Corren."], None, "memory"),
        TextTranslation(["WE RUN\nCorren."], None, "mixed"),
    ]
    assert ask.model.calls == [(["You run.", "we run"], 1)]


def test_alternatives_to_matches_are_those_of_the_model(ask):
    results = ask(["I sing. You run."], 1, known={"I sing.": "Canto.", "You run.": "YOU RUN."}, with_confidence=True)
    assert results == [TextTranslation(["Canto. YOU RUN.", "I SING. YOU RUN.1"], None, "memory")]
    assert ask.model.calls == [(["I sing.", "You run."], 2)]


@pytest.mark.parametrize(("options", "nbest"), [({}, 1), ({"nbest": 3}, 3)])
def test_tagged_texts_are_translated_in_parts_with_the_memory_of_their_client(monkeypatch, options, nbest):
    created, steps = [], []

    class Segments:
        def __init__(self, *arguments, retrieved_words):
            created.append((*arguments, retrieved_words))

        def stream(self, part):
            steps.append([source.text for source, *_ in part])
            return [source.text.upper() for source, *_ in part]

    memory = SimpleNamespace(recall_with=lambda formality: f"recall {formality}")
    monkeypatch.setattr(texts, "SegmentTranslator", Segments)
    monkeypatch.setattr(texts, "options_for", lambda translator, number: (translator, number))
    translator = SimpleNamespace(retrieval=None, formality=None)
    retrieving = SimpleNamespace(retrieval="memory", formality="formal")
    sources = [Source(TaggedText(text)) for text in ("x" * 900, "y" * 100, "z")]
    for used, used_memory in ((retrieving, memory), (translator, None)):
        served = Served("tiny", "en", "es", used, "batcher", used_memory)
        assert list(texts.translated(served, sources, **options)) == [source.text.upper() for source, *_ in sources]
        assert created.pop() == (used, (used, nbest), used_memory and "recall formal", used is retrieving)
    assert steps == [["x" * 900, "y" * 100], ["z"]] * 2


def test_short_documents_are_translated_together(monkeypatch):
    origins = {"a": "memory", "b": "model", "c": "memory"}

    def translated(served, sources):
        for number, (source, *_) in enumerate(sources):
            yield Target(TaggedText(source.upper()), origins[source], 0.5 - number / 10)

    def document(*sources):
        segments = [SimpleNamespace(source=source, longest=None) for source in sources]
        return SimpleNamespace(segments=segments, filled=written)

    def written(targets):
        return " ".join(f"{number}{target.marked.text}" for number, target in targets.items()).encode()

    monkeypatch.setattr(texts, "translated", translated)
    served = SimpleNamespace(translator=SimpleNamespace(context=None))
    filled = texts.fill(served, [document("a", "b"), document(), document("c")])
    assert [text[:3] for text in filled] == [
        (["0A 1B"], 0.4, "mixed"),
        ([""], None, "model"),
        (["0C"], 0.3, "memory"),
    ]


def test_a_result_too_few_is_an_error():
    async def too_few(code, batch):
        return batch[1:]

    with pytest.raises(ValueError, match="shorter"):
        asyncio.run(by_language(["a", "b"], ["en", "en"], too_few))
    for translations in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="argument"):
            Layout.of("I sing. You sing.", "en").fill(translations)
    decoding_options = SimpleNamespace(model_copy=lambda update: None, beam=1)
    translator = SimpleNamespace(
        configuration=SimpleNamespace(decoding=decoding_options), stream=lambda texts, options, split: texts[1:]
    )
    with pytest.raises(ValueError, match="shorter"):
        batcher.translate(translator, [Source("a"), Source("b")])
