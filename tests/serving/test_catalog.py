"""Which models are served under which names and languages, tested without loading models."""

from types import SimpleNamespace

import pytest

from translucid.data.tokenizing.tokenizer import TokenizerOptions
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.directions import ANY_SOURCE, LearnedDirections
from translucid.serving import catalog as catalog_module
from translucid.serving import catalog as language_pairs
from translucid.serving.catalog import Catalog, LanguagePairs, NamedModel, begin_with, is_language, load, offer
from translucid.serving.server_options import ServerOptions

from . import refusals


class Translator:
    languages = (None, None)

    def __init__(self, *names):
        self.names = names

    def between(self, source, target):
        return Translator(*self.names, source, target)

    def with_terms(self, terms):
        return Translator(*self.names, *terms)


def pairs(name, sources, targets, **options):
    """Return a model's pairs; languages are codes in one text, or a dictionary from usual codes to the model's."""
    sides = []
    for side in (sources, targets):
        sides.append(side if isinstance(side, dict) else dict.fromkeys(side.split()))
    return LanguagePairs(
        name, *sides, Translator(name), SimpleNamespace(close=lambda: closed_queues.append(name)), **options
    )


closed_queues = []
MANY = {"en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn"}


@pytest.fixture
def served():
    return Catalog([pairs("first", "en", "es"), pairs("second", "en de", "es fr"), pairs("many", MANY, MANY)])


def refusal_of(work, *arguments):
    return refusals.refusal_of(work, *arguments)[:2]


def test_the_languages_of_all_models(served):
    assert served.languages == ["de", "en", "es", "fr"]
    assert [served.targets(code) for code in ("en", "de", "fr", "es")] == [
        ["en", "es", "fr"],
        ["de", "en", "es", "fr"],
        ["en", "es", "fr"],
        ["en", "es", "fr"],
    ]
    assert Catalog([pairs("first", "en", "es")]).targets("es") == ["es"]
    assert served.sources("es") == ["en", "de", "es", "fr"]
    assert served.sources("fra_Latn") == ["en", "de", "es", "fr"]
    assert served.sources("de") == []
    assert served.candidates("fr") == ["en", "de", "es", "fr"]
    assert Catalog([pairs("first", "en de", "es")]).candidates("es") == ["en", "de", "es"]
    assert refusal_of(served.candidates, "x" * 30) == (400, "x" * 20 + " is not supported")


def test_the_first_model_of_a_pair_answers_unless_another_one_is_named(served):
    assert [served.find(*pair).name for pair in (("en", "es"), ("en", "fr"), ("fr", "en"), ("es", "fr"))] == [
        "first",
        "second",
        "many",
        "many",
    ]
    assert [served.find("en", "es", name).name for name in ("first", "second", "many")] == ["first", "second", "many"]
    assert refusal_of(served.find, "en", "fr", "first") == (400, "there is no model 'first' for en to fr")
    assert refusal_of(served.find, "en", "es", "x" * 60) == (400, f"there is no model {'x' * 50!r} for en to es")
    assert refusal_of(served.find, "xx" * 20, "es") == (400, "xx" * 10 + " is not supported")
    assert refusal_of(served.find, "en", "xx") == (400, "xx is not supported")
    assert refusal_of(served.find, "fr", "de") == (400, "de is not available as a target language from fr")
    assert refusal_of(served.find, "es", "es") == (400, "es is not available as a target language from es")


def test_pairs_that_two_models_have_together():
    combined = Catalog(
        [pairs("a", "es", "en"), pairs("b", "en", "fr de"), pairs("c", "fr", "en"), pairs("d", "es", "de")]
    )
    (through, back) = combined.pivots
    assert [(pivot.name, pivot.pivot, pivot.pair) for pivot in combined.pivots] == [
        ("a + b", "en", ("es", "fr")),
        ("c + b", "en", ("fr", "de")),
    ]
    assert [model.name for model in combined] == ["a", "b", "c", "d", "a + b", "c + b"]
    assert combined.languages == ["de", "en", "es", "fr"]
    assert combined.targets("es") == ["de", "en", "es", "fr"] and combined.sources("fr") == ["en", "es"]
    assert (
        combined.pivots_from("es") == {"fr": "en"}
        and combined.pivots_from("fr") == {"de": "en"}
        and not combined.pivots_from("en")
    )
    served = combined.find("es", "fra")
    assert (served.name, served.source, served.pivot, served.target) == ("a + b", "es", "en", "fr")
    assert (served.first.name, served.second.name) == ("a", "b") and served.batcher is combined.models[1].batcher
    assert served is combined.find("es", "fr", "a + b") is through.between("es", "fr")
    assert back.between("es", "fr") is None
    # A pair that one model translates directly is not pivoted.
    assert (
        combined.find("es", "de").name == "d" and combined.is_direct("es", "de") and not combined.is_direct("es", "fr")
    )
    assert refusal_of(combined.find, "de", "es") == (400, "es is not available as a target language from de")
    assert refusal_of(combined.find, "es", "fr", "b") == (400, "there is no model 'b' for es to fr")


def test_english_is_the_pivot_if_several_languages_are_shared():
    many = pairs("many", {"de": "deu_Latn", "en": "eng_Latn"}, {"de": "deu_Latn", "en": "eng_Latn"})
    (pivot,) = Catalog([pairs("a", "es", "de en"), many, pairs("b", "de en", "fr")]).pivots[:1]
    assert (pivot.name, pivot.pivot, pivot.pair) == ("a + b", "en", ("es", "fr"))
    no_english = Catalog([pairs("a", "es", "pt de"), pairs("b", "de pt", "fr")])
    assert [pivot.pivot for pivot in no_english.pivots] == ["pt"]
    assert not Catalog([many, pairs("b", "en", "de")]).pivots


def test_a_multilingual_model_and_one_of_a_single_pair():
    (pivot,) = Catalog([pairs("many", MANY, MANY), pairs("b", "en", "eo")]).pivots
    assert (list(pivot.sources), list(pivot.targets)) == (["es", "fr"], ["eo"])
    served = pivot.between("spa_Latn", "eo")
    assert served.first.translator.names == ("many", "spa_Latn", "eng_Latn")
    assert pivot.between("en", "eo") is None


def test_pairs_that_no_training_pair_taught_go_through_a_pivot():
    trained_pairs = {("en", "es"), ("es", "en"), ("en", "fr"), ("fr", "en")}
    many = Catalog([pairs("many", MANY, MANY, trained_pairs=trained_pairs)])
    assert many.pivots_from("es") == {"fr": "en"} and not many.is_direct("es", "fr") and many.is_direct("es", "en")
    served = many.find("es", "fr")
    assert (served.name, served.pivot, served.first.name, served.second.name) == ("many + many", "en", "many", "many")
    assert many.find("es", "fr", "many").translator.names == ("many", "spa_Latn", "fra_Latn")
    # Without a pivot, the model translates a pair that it was not trained on.
    into_english = Catalog([pairs("into", MANY, MANY, trained_pairs={("es", "en"), ("fr", "en")})])
    assert into_english.find("es", "fr").name == "into" and not into_english.pivots
    # Another model that was trained on the pair takes precedence.
    with_direct_model = Catalog([pairs("many", MANY, MANY, trained_pairs=trained_pairs), pairs("alone", "es", "fr")])
    assert with_direct_model.find("es", "fr").name == "alone" and with_direct_model.find("fr", "es").pivot == "en"


def test_a_model_of_one_pair_may_have_a_language_on_both_sides():
    model_of_one_language = Catalog([pairs("plain", "en", "en")])
    assert model_of_one_language.find("en", "en").name == "plain"


def test_a_pair_has_the_models_own_codes_and_terms_belong_to_the_first_pair():
    model = pairs("many", MANY, MANY, terms=("a term",))
    assert (model.pair, begin_with({"es": None}, {"es": None})) == (("en", "es"), ("es", "es"))
    english, spanish = model.between("en-GB", "spa_Latn"), model.between("es", "en")
    assert (english.name, english.source, english.target) == ("many", "en", "es")
    assert english.translator.names == ("many", "eng_Latn", "spa_Latn", "a term")
    assert spanish.translator.names == ("many", "spa_Latn", "eng_Latn")
    assert model.between("en", "es") is english and english.batcher is model.batcher
    assert model.between("de", "en") is None and model.between("en", "de") is None
    assert model.has("fr") and model.has("fra_Latn") and not model.has("de")
    one_way = pairs("first", "en", "es")
    assert [one_way.has(code) for code in ("en", "es", "fr")] == [True, True, False]
    assert one_way.between("en-US", "es").translator.names == ("first", None, None)


def test_models_that_do_not_translate_are_found_by_name():
    named = [NamedModel("one", 1), NamedModel("two", 2)]
    without_translators = Catalog(others={"images": named, "running text": named[:1]})
    assert [
        without_translators.other("images").name,
        without_translators.other("images", "two").name,
        without_translators.other("running text").name,
    ] == ["one", "two", "one"]
    unknown = f"there is no model {'x' * 50!r} that "
    assert refusal_of(without_translators.other, "images", "x" * 60) == (400, unknown + "writes about images")
    assert refusal_of(without_translators.other, "running text", "x" * 60) == (400, unknown + "continues texts")
    for name in (None, "one"):
        assert refusal_of(without_translators.other, "texts with labels", name) == (
            400,
            "No model that classifies texts is served here",
        )
    paths = "No translator is served here, only other models (/caption, /generate)"
    for work, arguments in (
        (without_translators.need_translators, ()),
        (without_translators.find, ("en", "es")),
        (without_translators.candidates, ("es",)),
    ):
        assert refusal_of(work, *arguments) == (400, paths)
    Catalog([pairs("first", "en", "es")]).need_translators()


def test_all_queues_are_closed(served):
    closed_queues.clear()
    served.close()
    assert closed_queues == ["first", "second", "many"]


@pytest.mark.parametrize(
    ("argument", "label", "folder"),
    [
        ("runs/demo", (None, None), "runs/demo"),
        ("en-es=runs/demo", ("en", "es"), "runs/demo"),
        ("pt-BR-zh-Hans=a=b", ("pt-BR", "zh-Hans"), "a=b"),
        ("en-pt-BR=a", ("en", "pt-BR"), "a"),
        ("*-es=a", ("*", "es"), "a"),
    ],
)
def test_languages_before_a_folder(argument, label, folder):
    assert catalog_module._languages_and_folder(argument) == (label, folder)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("en=a", "'en' does not name two languages. Write en-es=a"),
        ("eng-spa=a", "'eng-spa' does not name two languages. Write en-es=a"),
        ("eng-deu=a", "'eng-deu' does not name two languages. Write en-de=a"),
        ("english-spanish=", "'english-spanish' does not name two languages. Write en-es=FOLDER"),
        ("en-de=", "names no run folder. Write en-de=FOLDER"),
    ],
)
def test_languages_that_are_none(argument, message):
    with pytest.raises(UserError) as error:
        catalog_module._languages_and_folder(argument)
    codes = ", with the codes of the source and the target language."
    assert str(error.value) == f"{argument}: {message}{codes}"


def test_a_folder_may_have_a_name_with_an_equals_sign(tmp_path):
    (tmp_path / "en-es=x").mkdir()
    assert catalog_module._languages_and_folder(f"{tmp_path}/en-es=x") == ((None, None), f"{tmp_path}/en-es=x")


def test_names_of_models_are_unique():
    names = {"a", "a 2", "b"}
    assert [catalog_module._unused(name, names) for name in ("a", "b", "c")] == ["a 3", "b 2", "c"]


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("en", True),
        ("ast", True),
        ("pt-BR", True),
        ("es-419", True),
        ("zh-Hans", True),
        ("zh-Hans-CN", True),
        ("e", False),
        ("enx", False),
        ("en-us", False),
        ("en-USA", False),
        ("en-41", False),
        ("zh-hans", False),
        ("en-", False),
    ],
)
def test_codes_of_languages(code, known):
    assert is_language(code) is known


def languages_offered(*label, languages=None, language_pieces="source-side", default=("en", "es")):
    """Return the usual codes that a run offers, mapped to the model's own codes."""
    configuration = resolve()
    source, target = default
    data = configuration.data.model_copy(update={"source_language": source, "target_language": target})
    if languages:
        tokenizer = TokenizerOptions(languages={code: code for code in languages}, language_pieces=language_pieces)
        learned = LearnedDirections({ANY_SOURCE: languages}, marks_sources=tokenizer.marks_sources)
        data = SimpleNamespace(tokenizer=tokenizer, languages=default, learned_directions=learned)
    return offer(SimpleNamespace(data=data), *(label or (None, None)), "runs/x")


def test_languages_of_a_run_of_one_pair():
    assert languages_offered() == ({"en": None}, {"es": None})
    assert languages_offered("de", "fr") == ({"de": None}, {"fr": None})
    assert languages_offered("*", "fr") == ({"en": None}, {"fr": None})
    assert languages_offered("de", "*", default=(None, "it")) == ({"de": None}, {"it": None})
    for default, label in (((None, "es"), (None, None)), (("en", None), ("de", None)), ((None, None), ("*", "fr"))):
        with pytest.raises(UserError) as error:
            languages_offered(*label, default=default)
        assert str(error.value) == (
            "runs/x: does not say which languages it translates. Write en-es=runs/x (with its codes)."
        )


NLLB = ["spa_Latn", "eng_Latn", "fra_Latn", "zho_Hant", "made_up"]


def test_languages_of_a_run_of_many():
    language_pieces = "both-sides"
    sources, targets = languages_offered(
        languages=NLLB, language_pieces=language_pieces, default=("fra_Latn", "spa_Latn")
    )
    codes = {"en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn", "made_up": "made_up", "zh-Hant": "zho_Hant"}
    assert dict(sources) == dict(targets) == codes
    assert [*sources][:2] == ["fr", "en"] and [*targets][:2] == ["es", "en"]
    sources, targets = languages_offered(languages=NLLB, language_pieces=language_pieces, default=(None, None))
    assert [*sources] == [*targets] == ["en", *sorted(set(codes) - {"en"})]
    sources, targets = languages_offered("fr", "zh-TW", languages=NLLB, language_pieces=language_pieces)
    assert (sources, targets) == ({"fr": "fra_Latn"}, {"zh-Hant": "zho_Hant"})


def test_languages_of_a_run_that_learned_several_directions():
    files = {"data.train": ["a.tsv:en-fr", "b.tsv:en-de"], "data.valid": ["c.tsv:en-fr"]}
    to_english = resolve(overrides={**files, "data.reverse": True})
    assert offer(to_english, None, None, "runs/x") == ({"de": "de", "fr": "fr"}, {"en": "en"})
    sources, targets = offer(resolve(overrides={**files, "data.both_directions": True}), "fr", "*", "runs/x")
    assert sources == {"fr": "fr"} and [*targets] == ["en", "de", "fr"]


def test_codes_that_are_usual_for_two_languages_of_a_model():
    codes = language_pairs._by_usual_code(["spa_Latn", "fra_Latn", "fra", "made_up"])
    assert list(codes.items()) == [("es", "spa_Latn"), ("fr", "fra"), ("fra_Latn", "fra_Latn"), ("made_up", "made_up")]


def test_languages_of_a_run_of_many_targets():
    sources, targets = languages_offered("en", "*", languages=NLLB, default=(None, None))
    assert sources == {"en": "en"} and len(targets) == 5 and next(iter(targets)) == "en"
    sources, _ = languages_offered(languages=NLLB, default=("eng_Latn", None))
    assert sources == {"en": "eng_Latn"}
    with pytest.raises(UserError) as error:
        languages_offered(languages=NLLB, default=(None, None))
    assert str(error.value) == "runs/x: does not say which language it reads. Write 'en-*=runs/x' (with its code)."


def test_languages_of_a_run_that_was_trained_on_several_directions():
    files = {"train": ["a.tsv:en-fr", "b.tsv:es-en"], "valid": ["c.tsv:en-fr"]}
    both = resolve(overrides={f"data.{name}": value for name, value in files.items()} | {"data.both_directions": True})
    sources, targets = offer(both, None, None, "runs/x")
    assert list(sources) == list(targets) == ["en", "es", "fr"] and sources["es"] == "es"
    assert offer(both, "es", "fr", "runs/x") == ({"es": "es"}, {"fr": "fr"})
    one_way = resolve(overrides={f"data.{name}": value for name, value in files.items()})
    sources, targets = offer(one_way, None, None, "runs/x")
    assert (list(sources), list(targets)) == (["en", "es"], ["en", "fr"])
    with pytest.raises(UserError, match=r"runs/x: has no language 'de'\. It has en, es\."):
        offer(one_way, "de", None, "runs/x")


def test_a_language_that_a_run_does_not_have():
    for count, ellipsis in ((20, ""), (21, ", …")):
        codes = [f"l{i:02}" for i in range(count)]
        with pytest.raises(UserError) as error:
            languages_offered(None, "xx", languages=codes, language_pieces="both-sides")
        assert str(error.value) == f"runs/x: has no language 'xx'. It has {', '.join(codes[:20])}{ellipsis}."


def test_a_wrong_label_is_reported_before_any_model_is_loaded(monkeypatch):
    monkeypatch.setattr(catalog_module, "resolve_run", None)
    with pytest.raises(UserError, match="does not name two languages"):
        load(["runs/a", "x=runs/b"], "cpu", ServerOptions())
