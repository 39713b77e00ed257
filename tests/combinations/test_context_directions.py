"""Document context with several directions, with mixed-in pairs and with .tmx files."""

from types import SimpleNamespace

import pytest

from bitext.pair import Pair
from translucid import Translator
from translucid.data.document_context import Source
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import read_corpora
from translucid.training.experiment import prepared

from ..conftest import SETTINGS

SENTENCES = ["ba da.", "be de.", "bi di."]
"""A document of three sentences; another one has the same in capitals."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    for code, mark in (("fr", "!"), ("de", "?")):
        documents = []
        for change in (str.lower, str.upper):
            documents.append("".join(f"{change(text)}\t{change(text)}{mark}\n" for text in SENTENCES))
        (folder / f"{code}.tsv").write_text("\n".join(documents))
    return folder


@pytest.fixture(scope="module")
def trained_run(files, tmp_path_factory):
    """A run of four directions, two of them mixed in, and the batches of 12 epochs."""
    settings = ["data.context=2", "data.both_directions=true", "data.subword_dropout=0", "data.tokenizer.vocabulary=40"]
    settings += ["training.max_steps=1", "training.validate_every=1", "training.batch_tokens=4000"]
    settings += ["training.validate_sentences=6"]
    overrides = {
        "data.train": [f"{files}/fr.tsv:en-fr"],
        "data.mix": {f"{files}/de.tsv:en-de": 0.5},
        "data.valid": [f"{files}/fr.tsv:en-fr", f"{files}/de.tsv:en-de"],
    }
    configuration = resolve(assignments=[*SETTINGS, *settings], overrides=overrides)
    folder = tmp_path_factory.mktemp("runs") / "run"
    with prepared(configuration, folder, device="cpu") as (trainer, display):
        trainer.fit(display)
        batches = [shared.rows for epoch in range(12) for shared in trainer.epochs.batches(epoch)]
    return SimpleNamespace(folder=folder, batches=batches, validator=trainer.validator)


def read_rows(trained_run, ids):
    """Return the pieces of sources in words: ">>fr<< ba da. ‖ >>fr<< be de."."""
    tokenizer = Translator.load(trained_run.folder, "cpu", "torch", source="en", target="fr").tokenizer
    rows = []
    for row in ids:
        pieces = [piece for piece in tokenizer.source_pieces(row) if not piece.startswith(("<pad", "</s"))]
        text = "".join(pieces).replace(SEPARATOR, "‖").replace("▁", " ").replace("<<", "<< ").replace("‖", " ‖ ")
        rows.append(" ".join(text.split()))
    return rows


def test_training_joins_the_sentences_of_a_document_in_each_direction(trained_run):
    """Every number of previous sentences occurs; none is of another document, file or direction."""
    sources = set()
    for batch in trained_run.batches:
        sources.update(read_rows(trained_run, batch.source.tolist()))
    expected = set()
    for code, mark in (("fr", ""), ("en", "!"), ("de", ""), ("en", "?")):
        for change in (str.lower, str.upper):
            sentences = [f">>{code}<< {change(text)}{mark}" for text in SENTENCES]
            for last in range(3):
                expected.update(" ‖ ".join(sentences[first : last + 1]) for first in range(last + 1))
    assert sources == expected


def test_half_of_an_epoch_is_mixed_in(trained_run):
    """An epoch reads the 12 pairs of the training file, 6 in each direction, and as many of the mixed-in file."""
    rows = read_rows(trained_run, [row for batch in trained_run.batches for row in batch.source.tolist()])
    german = [row for row in rows if ">>de<<" in row or "?" in row]
    assert len(rows) == 12 * 24 and len(german) == 12 * 12


@pytest.mark.parametrize(("source", "target", "mark"), [("en", "fr", ""), ("de", "en", "?")])
def test_translation_and_validation_read_what_training_reads(trained_run, source, target, mark):
    translator = Translator.load(trained_run.folder, "cpu", "torch", source=source, target=target)
    texts = [f"{text}{mark}" for text in SENTENCES]
    pieces = translator.pipeline.pieces([Source(texts[2], tuple(texts[:2]))], split=False)
    (row,) = read_rows(trained_run, translator.pipeline.inputs(pieces[0]))
    assert row == " ‖ ".join(f">>{target}<< {text}" for text in texts)
    assert row in read_rows(trained_run, trained_run.validator.validators[f"{source}-{target}"].ids)


UNIT = (
    '<tu><prop type="x-document">{}</prop><tuv xml:lang="en"><seg>{}</seg></tuv>'
    '<tuv xml:lang="es"><seg>{}</seg></tuv>{}</tu>'
)


def memory(folder, variant=""):
    units = "".join(
        UNIT.format(*row, variant) for row in (("a", "one", "uno"), ("a", "two", "dos"), ("b", "three", "tres"))
    )
    file = folder / "memory.tmx"
    file.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>')
    return file


def test_a_tmx_file_without_languages_in_its_name_has_documents(tmp_path):
    file = memory(tmp_path)
    data = resolve(overrides={"data.train": [str(file)], "data.valid": [str(file)], "data.context": 1}).data
    corpora = read_corpora(data, 1)
    first, second, third = corpora.train[0]
    assert first == Pair("one", "uno") and first.document == second.document != third.document
    assert [pair.document for pair in corpora.valid] == [pair.document for pair in corpora.train[0]]


def test_several_directions_of_a_tmx_file_are_named(tmp_path):
    file = memory(tmp_path, '<tuv xml:lang="fr"><seg>un</seg></tuv>')
    with pytest.raises(UserError, match="languages"):
        resolve(
            overrides={
                "data.train": [f"{file}:en-es", f"{file}:en-fr", str(file)],
                "data.valid": [f"{file}:en-es"],
                "data.context": 1,
            }
        )
    data = resolve(overrides={"data.train": [str(file)], "data.valid": [str(file)], "data.context": 1}).data
    with pytest.raises(UserError, match="en, es, fr"):
        list(read_corpora(data, 1).train[0])
