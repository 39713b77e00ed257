"""The translation directions of a run, from its file names to its training pairs."""

import pytest

from bitext.pair import Pair
from translucid.ground.errors import UserError
from translucid.runs.configuration import fixed_settings, resolve
from translucid.runs.corpus_files import pairs_of, read_corpora

FILES = {"fr.tsv": "one\tun\n", "de.tsv": "two\tzwei\n", "dev-fr.tsv": "three\ttrois\n", "dev-de.tsv": "four\tvier\n"}


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)


def options(train=("fr.tsv:en-fr", "de.tsv:en-de"), valid=("dev-fr.tsv:en-fr", "dev-de.tsv:en-de"), **settings):
    groups = {f"data.{key}": value for key, value in settings.items()}
    return resolve(overrides={"data.train": list(train), "data.valid": list(valid), **groups}).data


def test_each_direction_has_its_pairs():
    corpora = read_corpora(options(both_directions=True), seed=1)
    pairs = [list(corpus) for corpus in corpora.train]
    assert pairs == [[Pair("one", "un")], [Pair("un", "one")], [Pair("two", "zwei")], [Pair("zwei", "two")]]
    assert corpora.directions == [("en", "fr"), ("fr", "en"), ("en", "de"), ("de", "en")]
    assert corpora.valid_by_direction == {
        ("en", "fr"): [Pair("three", "trois")],
        ("fr", "en"): [Pair("trois", "three")],
        ("en", "de"): [Pair("four", "vier")],
        ("de", "en"): [Pair("vier", "four")],
    }


def test_a_piece_for_each_language_that_is_written():
    assert options().tokenizer.languages == {"de": ">>de<<", "fr": ">>fr<<"}
    assert options(reverse=True).tokenizer.languages == {"en": ">>en<<"}
    assert set(options(both_directions=True).tokenizer.languages) == {"en", "fr", "de"}
    assert options(reverse=True).all_languages == ["de", "en", "fr"]


def test_a_language_that_all_directions_have_needs_no_choice():
    assert options().languages == ("en", None)
    assert options(reverse=True).languages == (None, "en")
    assert options(both_directions=True).languages == (None, None)
    assert options(["fr.tsv:en-fr"], ["dev-fr.tsv"]).languages == ("en", "fr")
    assert not options(["fr.tsv:en-fr"], ["dev-fr.tsv"]).tokenizer.languages


@pytest.mark.parametrize("settings", [{"both_directions": True}, {"reverse": True}])
def test_chosen_languages_choose_the_files(settings):
    chosen = options(**settings).between("deu", "en")
    assert list(pairs_of(chosen, *chosen.train)) == [Pair("zwei", "two")]
    corpora = read_corpora(chosen, seed=1)
    assert corpora.valid == [Pair("vier", "four")]
    zero_shot = options(**settings).between("de", "fr")
    assert list(pairs_of(zero_shot, "fr.tsv:fr-de")) == [Pair("un", "one")]
    with pytest.raises(UserError, match="no sentence pairs are left"):
        read_corpora(zero_shot, seed=1)


def test_the_same_language_has_one_code():
    codes = options(["fr.tsv:eng-fra", "de.tsv:en-de"], ["dev-fr.tsv:en-fr"])
    assert codes.corpus_directions == (("en", "fr"), ("en", "de"))
    model_codes = {"eng_Latn": "eng_Latn", "fra_Latn": "fra_Latn"}
    model_options = options(["fr.tsv:en-fr"], ["dev-fr.tsv"], tokenizer={"languages": model_codes})
    assert model_options.corpus_directions == (("eng_Latn", "fra_Latn"),) and model_options.languages == (
        "eng_Latn",
        "fra_Latn",
    )


def test_the_directions_of_the_run_do_not_depend_on_those_chosen():
    assert options().between("en", "fr").learned == options().learned


WRONG = {
    "choose one of several directions": {"source_language": "en", "target_language": "fr"},
    "has no languages": {"train": ["fr.tsv:en-fr", "de.tsv:en-de", "x.tsv"]},
    "needs? the? validation files|need validation files": {"valid": []},
    "has other languages than the other files": {"train": ["fr.tsv:en-fr"]},
    "do not go together": {"reverse": True, "both_directions": True},
    "does not learn to write es": {"valid": ["dev-fr.tsv:en-es"]},
    "need one vocabulary": {"tokenizer": {"joint": False}},
    "data.terms is for a single direction": {"terms": 0.5},
    "data.fuzzy_matches is for a single direction": {"fuzzy_matches": 50},
    "data.target_text is for a single direction": {"target_text": ["x.txt"]},
    "data.subword_dropout is for a single direction": {"subword_dropout": 0.1},
}


@pytest.mark.parametrize("message", WRONG)
def test_settings_that_several_directions_can_not_have_are_named(message):
    with pytest.raises(UserError, match=message):
        options(**WRONG[message])


def test_guided_alignment_is_for_one_direction():
    files = {"data.train": ["fr.tsv:en-fr", "de.tsv:en-de"], "data.valid": ["dev-fr.tsv:en-fr"]}
    with pytest.raises(UserError, match=r"training.guided_alignment is for a single direction"):
        resolve(overrides={**files, "training.guided_alignment": 0.1})


def test_shares_and_weights_hold_for_each_direction():
    mixed = options(both_directions=True, mix={"fr.tsv:en-fr": 0.3}, weights=[3, 1])
    assert mixed.corpus_weights == [3, 3, 1, 1]
    assert mixed.mixed_shares == pytest.approx([0.15, 0.15])


def test_other_directions_are_other_text():
    first, swapped = options(), options(["fr.tsv:en-de", "de.tsv:en-fr"])
    assert read_corpora(first, seed=1).digest != read_corpora(swapped, seed=1).digest


def test_checkpoints_of_one_direction_stay_valid():
    assert "both_directions" not in fixed_settings(resolve())


def test_one_chosen_language_chooses_among_the_directions():
    """A file that is read in both directions has pairs into one language in only one of them."""
    options_of_run = options(both_directions=True)
    to_english = options_of_run.between(None, "en")
    assert list(pairs_of(to_english, *to_english.train)) == [Pair("un", "one"), Pair("zwei", "two")]
    with pytest.raises(UserError, match=r"de\.tsv:en-de: has no pairs from fr to any language"):
        list(pairs_of(options_of_run.between("fr", None), "de.tsv:en-de"))
