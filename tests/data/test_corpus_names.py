"""The languages after the name of a corpus, and names that only seem to have them."""

import gzip

import pytest

from bitext.pair import Pair
from translucid.cli.arguments import pair_up
from translucid.data.readers.corpus import CorpusName, placed_pairs, read_pairs, refuse_wrong_languages, sides
from translucid.ground.errors import UserError

LANGUAGES = {
    "train.tsv:en-fr": ("train.tsv", ("en", "fr")),
    "a/b.tsv.gz:pt-BR-en": ("a/b.tsv.gz", ("pt-BR", "en")),
    "x.tmx:en-zh-Hans": ("x.tmx", ("en", "zh-Hans")),
    "x.tmx:spa_Latn-eng_Latn": ("x.tmx", ("spa_Latn", "eng_Latn")),
    "x.{en,fr}:en-fr": ("x.{en,fr}", ("en", "fr")),
    "es-419.tsv:es-419-en": ("es-419.tsv", ("es-419", "en")),
}
NO_LANGUAGES = [
    *("train.tsv", r"C:\data\en-fr.tsv", "a:b.tsv", "train.tsv:en", "train.tsv:en-fr-de", "x:en-fr.{en,fr}"),
    *("-", "-:en-fr", ":en-fr", "train.tsv:EN-FR", "train.tsv:"),
]


@pytest.mark.parametrize("name", LANGUAGES)
def test_languages_follow_a_colon(name):
    assert CorpusName.parse(name) == LANGUAGES[name]
    assert CorpusName.parse(name).files + CorpusName.parse(name).suffix == name


@pytest.mark.parametrize("name", NO_LANGUAGES)
def test_other_names_stay_whole(name):
    assert CorpusName.parse(name) == (name, None)


@pytest.mark.parametrize(
    "name", [*LANGUAGES, *(name for name in NO_LANGUAGES if not name.endswith(("EN-FR", "en", "de")))]
)
def test_languages_that_are_codes_are_accepted(name):
    refuse_wrong_languages(name)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("EN-ES", "no codes. Write FILE:en-es;"),
        ("en-zh_cn", "no codes. Write FILE:en-zh-CN;"),
        ("eng_latn-SPA", "no codes. Write FILE:en-es;"),
        ("en", "no codes. Write FILE:en-es;"),
        ("en-fr-de", "no codes. Write FILE:en-fr-DE;"),
        ("en-en", "the language en on both sides"),
        ("eng-en", "the language eng on both sides"),
        ("xx-yy", "the language 'xx', which is no code"),
        ("en-qq", "the language 'qq', which is no code"),
    ],
)
def test_languages_that_are_no_codes_are_refused_wherever_a_corpus_is_named(tmp_path, written, message):
    for file in ("pairs.tsv", "missing.tsv.xz", "pairs.{en,es}"):
        (tmp_path / "pairs.tsv").write_text("a\tb\n")
        name = f"{tmp_path}/{file}:{written}"
        message_of_file = message.replace("FILE", f"{tmp_path}/{file}")
        for read in (lambda: pair_up([name]), lambda: list(read_pairs(name))):  # noqa: B023 - called at once
            with pytest.raises(UserError) as error:
                read()
            assert message_of_file in str(error.value)


def test_languages_with_regions_and_rare_ones_are_codes(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    for written in ("pt-BR-pt-PT", "zh-Hans-zh-Hant", "quy-es", "iw-en", "en-eml"):
        assert list(read_pairs(f"{tmp_path}/pairs.tsv:{written}")) == [Pair("a", "b")]


def test_the_name_of_a_file_that_exists_stays_whole(tmp_path):
    (tmp_path / "notes.tsv:en-fr").write_text("a\tb\n")
    name = str(tmp_path / "notes.tsv:en-fr")
    assert CorpusName.parse(name) == (name, None)
    assert sides(name) == [tmp_path / "notes.tsv:en-fr"]


def test_files_of_all_kinds_are_read_with_languages(tmp_path):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    (tmp_path / "a.en").write_text("a\n")
    (tmp_path / "a.fr").write_text("b\n")
    for name in ("a.tsv.gz:en-fr", "a.{en,fr}:en-fr"):
        assert list(read_pairs(f"{tmp_path}/{name}")) == [Pair("a", "b")]
    (placed,) = placed_pairs(f"{tmp_path}/a.tsv.gz:en-fr")
    assert placed.file == f"{tmp_path}/a.tsv.gz"


def test_the_languages_choose_among_those_of_a_memory(tmp_path):
    variants = "".join(f'<tuv xml:lang="{code}"><seg>{code}!</seg></tuv>' for code in ("en", "fr", "de"))
    header = '<header srclang="en"/>'
    (tmp_path / "m.tmx").write_text(f'<tmx version="1.4">{header}<body><tu>{variants}</tu></body></tmx>')
    assert list(read_pairs(f"{tmp_path}/m.tmx:fr-de", languages=("en", "fr"))) == [Pair("fr!", "de!")]


def test_both_sides_that_a_shell_has_written_out_are_one_corpus():
    assert pair_up(["x.en.gz:en-fr", "x.fr.gz:en-fr", "y.tsv:en-de"]) == ["x.{en,fr}.gz:en-fr", "y.tsv:en-de"]
    with pytest.raises(UserError, match="partner is missing"):
        pair_up(["x.en:en-fr", "x.fr:en-de"])
