"""The languages after the name of a corpus, and names that only seem to have them."""

import gzip

import pytest

from translucid.cli.arguments import pair_up
from translucid.data.readers.corpus import Pair, placed_pairs, read_pairs, sides
from translucid.data.readers.corpus_names import CorpusName
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
