"""Official test sets: sacreBLEU's from a cache that is filled by hand, and files as they are published."""

import gzip

import pytest
from sacrebleu.dataset import DATASETS

from translucid.data.readers.corpus import CorpusName, read_pairs, references_of, sides
from translucid.data.readers.test_sets import problem_of_test_set
from translucid.ground.errors import UserError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """sacreBLEU's cache, and no network."""

    def refuse(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setenv("SACREBLEU", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    for name in ("wmt13", "wmt14", "wmt22"):  # sacreBLEU has read the variable when it was imported
        monkeypatch.setattr(DATASETS[name], "_outdir", str(tmp_path / "cache" / name))
        monkeypatch.setattr(DATASETS[name], "_rawdir", str(tmp_path / "cache" / name / "raw"))
    return tmp_path / "cache"


def fill(folder, stem, **columns):
    folder.mkdir(parents=True, exist_ok=True)
    for field, rows in columns.items():
        (folder / f"{stem}.{field.replace('_', '-')}").write_text("".join(f"{row}\n" for row in rows), "utf-8")


def test_a_cached_set_is_read_with_its_documents_and_all_references(cache):
    fill(cache / "wmt14", "wmt14.en-de", src=["a", "b", "c"], ref=["A", "B", "C"], docid=["x", "x", "y"])
    pairs = list(read_pairs("sacrebleu:wmt14/en-de", documents=True))
    assert pairs == [("a", "A"), ("b", "B"), ("c", "C")] and references_of(pairs) == [["A", "B", "C"]]
    assert pairs[0].document == pairs[1].document != pairs[2].document
    assert [file.name for file in sides("sacrebleu:wmt14/en-de")] == ["wmt14.en-de.src", "wmt14.en-de.ref"]
    # Another format of sacreBLEU, whose own API would download the set to learn its fields.
    columns = {"src": ["a", "b"], "ref_A": ["A", "B"], "ref_B": ["AA", ""], "ref_C": ["no", "no"]}
    fill(cache / "wmt21/AB", "wmt21_AB.en-de", **columns)
    pairs = list(read_pairs("sacrebleu:wmt21/AB/en-de"))
    assert references_of(pairs) == [["A", "B"], ["AA", ""]]
    assert pairs[0].swapped == ("A", "a") and pairs[0].swapped.references == ()
    assert references_of([*pairs, *read_pairs("sacrebleu:wmt14/en-de")])[1] == ["AA", "", "", "", ""]


def test_sacrebleu_converts_a_set_whose_original_files_are_there(cache):
    raw = cache / "wmt14" / "raw"
    for side, lines in (("src.en", ["one", "two  words"]), ("ref.de", ["eins", "zwei Wörter"])):
        segments = [f'<seg id="{i}"> {line} </seg>\n' for i, line in enumerate(lines)]
        (raw / "test").mkdir(parents=True, exist_ok=True)
        text = '<doc docid="first">\n' + segments[0] + '</doc>\n<doc docid="second">\n' + segments[1] + "</doc>\n"
        (raw / f"test/newstest2014-deen-{side}.sgm").write_text(text, "utf-8")
    (raw / "wmt14.test-filtered.tgz").write_bytes(b"downloaded")
    pairs = list(read_pairs("sacrebleu:wmt14/en-de", documents=True))
    assert pairs == [("one", "eins"), ("two words", "zwei Wörter")] and pairs[0].document != pairs[1].document


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sacrebleu:wmt140/en-de", "sacreBLEU has no test set 'wmt140'. Did you mean 'wmt14'?"),
        ("sacrebleu:multi30k/en-de", "Known: multi30k/2016, multi30k/2017, multi30k/2018."),
        ("sacrebleu:wmt14/en-es", "sacreBLEU's wmt14 has no language pair 'en-es'. It has cs-en, de-en, en-cs"),
        ("sacrebleu:multi30k/2016", "names no language pair. Write sacrebleu:multi30k/2016/en-cs; it has en-cs, en-de"),
        ("sacrebleu:", "sacreBLEU has no test set ''. Known: iwslt17"),
    ],
)
def test_unknown_sets_and_pairs_list_near_names(name, message):
    with pytest.raises(UserError) as error:
        list(read_pairs(name))
    assert str(error.value).startswith(f"{name}: ") and message in str(error.value)


def test_a_set_that_can_not_be_downloaded_is_one_line(cache, caplog):
    for name, file in {"wmt13/en-es": "wmt13.en-es.src", "wmt22/de-fr": "wmt22.de-fr.src"}.items():
        with pytest.raises(UserError) as error:
            list(read_pairs(f"sacrebleu:{name}"))
        folder, pair = name.split("/")
        assert str(error.value) == (
            f"sacrebleu:{name}: {file} is not in sacreBLEU's cache, {cache / folder}, and can't be downloaded (no "
            f"network). Run `sacrebleu --download {folder} --language-pair {pair}` on a machine with a network, and "
            f"copy the folder ~/.sacrebleu/{folder} from there."
        )
    fill(cache / "wmt13", "wmt13.en-es", src=["a", "b"], docid=["x"])
    with pytest.raises(UserError, match=r"wmt13\.en-es\.ref is not in sacreBLEU's cache"):
        list(read_pairs("sacrebleu:wmt13/en-es"))
    fill(cache / "wmt13", "wmt13.en-es", ref=["A", "B"])
    with pytest.raises(UserError, match=r"en-es\.docid: has 1 lines but wmt13\.en-es\.src has 2"):
        list(read_pairs("sacrebleu:wmt13/en-es"))
    assert not caplog.records


def test_all_sets_have_languages_that_we_know():
    for name, dataset in DATASETS.items():
        for pair in dataset.langpairs:
            assert problem_of_test_set(f"sacrebleu:{name}/{pair}") is None
            assert CorpusName.parse(f"sacrebleu:{name}/{pair}").languages == tuple(pair.split("-"))


def test_the_columns_of_the_tatoeba_challenge_are_recognized(tmp_path):
    rows = "eng\tspa\tIt rains.\tLlueve.\neng\tspa\tYes.\tSí.\n"
    (tmp_path / "four.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    assert list(read_pairs(tmp_path / "four.tsv.gz")) == [("It rains.", "Llueve."), ("Yes.", "Sí.")]
    # A row of a usual table may begin with words that look like codes.
    (tmp_path / "usual.tsv").write_text("sea\tmar\tnoun\teng-spa\nson\thijo\tnoun\teng-spa\n")
    assert next(read_pairs(tmp_path / "usual.tsv")) == ("sea", "mar")


def test_official_files_are_read_as_they_are(real_data):
    folder = real_data / "official"
    flores = list(read_pairs(folder / "flores200.devtest.{eng_Latn,spa_Latn}.gz"))
    assert len(flores) == 1012 and flores[0].source.startswith('"We now have 4-month-old mice')
    assert len(list(read_pairs(folder / "tatoeba-test-v2021-08-07.eng-spa.tsv.gz"))) == 16_583
