"""Adding a language to a multilingual translator: initial rows, translation quality, and refused settings."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from translucid.api.fitting.confidence_fitting import fit_validation_scores
from translucid.api.translator import Translator
from translucid.data.stores.store import CorpusStore
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.runs.configuration import resolve
from translucid.runs.data_options import ADDED_FOR_LANGUAGES
from translucid.runs.initialization import settings_from
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.experiment import run_experiment
from translucid.training.post_training import trained_directions

from ..conftest import SETTINGS
from .test_directions import WORDS, files, run  # noqa: F401
from .test_resume import assert_same_run

SPANISH = {"ba": "ñá", "be": "ñé", "bi": "ñí", "bo": "ñó", "bu": "ñú", "da": "ñw", "de": "ñx", "di": "ñy"}


@pytest.fixture(scope="module")
def spanish(files, tmp_path_factory):  # noqa: F811
    """Write pairs whose target words have letters that the other languages lack, beside the files of those."""
    folder = shutil.copytree(files, tmp_path_factory.mktemp("spanish") / "files")
    for split in ("train", "dev"):
        lines = []
        for line in (files / f"{split}-fr.tsv").read_text().splitlines()[:400]:
            words = line.split("\t")[0].split()
            lines.append(f"{' '.join(words)}\t{' '.join(SPANISH[word] for word in words)}\n")
        (folder / f"{split}-es.tsv").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def extend(spanish, run):  # noqa: F811
    """Fine-tune the run of two directions for a third: extend(folder, "training.max_steps=9")."""

    def extending(folder, *settings, resume=False, begin_from=run[0], **overrides):
        overrides.setdefault("data.train", [f"{spanish}/train-es.tsv:en-es"])
        overrides.setdefault("data.valid", [f"{spanish}/dev-es.tsv:en-es"])
        mix = {f"{spanish}/train-{code}.tsv:en-{code}": 0.3 for code in ("fr", "de")}
        overrides.setdefault("data.mix", mix)
        assignments = [
            *SETTINGS,
            "model.width=32",
            "data.subword_dropout=0",
            "training.accumulate=1",
            "training.batch_tokens=300",
            *settings,
        ]
        initial_settings = settings_from(begin_from, None)
        configuration = resolve(assignments=assignments, overrides=overrides, initial_settings=initial_settings)
        console = Console(quiet=True)
        run_experiment(configuration, folder, resume=resume, device="cpu", console=console)
        return RunFolder(folder)

    return extending


GENERAL_FILES = ("fr", "de")


def test_it_learns_the_new_direction_and_keeps_the_others(extend, spanish, tmp_path):
    general = [f"{spanish}/dev-{code}.tsv:en-{code}" for code in GENERAL_FILES]
    settings = ["training.max_steps=200", "training.validate_every=100", "training.learning_rate=0.01"]
    settings += ["training.warmup=20", "model.dropout=0", "training.cooldown=0.5"]
    folder = extend(tmp_path / "more", *settings, **{"data.valid_general": general})
    expected = {"fr": "BA DI BO", "de": "bo di ba", "es": "ñá ñy ñó"}
    for code, text in expected.items():
        assert Translator.load(folder.path, "cpu", "torch", target=code).translate("ba di bo").text == text
    # Only the general validation files have pairs of the former directions.
    assert fit_validation_scores(folder.path, console=Console(quiet=True), device="cpu", source="en", target="de")
    rows = [row for row in folder.metrics() if row["kind"] == "validation"]
    by_direction = [rows[0][f"general_bleu.en-{code}"] for code in GENERAL_FILES]
    assert rows[0]["general_bleu"] == pytest.approx(np.mean(by_direction), rel=1e-4)
    assert rows[0]["chrf"] < 30 < 95 < rows[-1]["chrf"]


def test_new_rows_are_means_of_former_ones(extend, run, tmp_path):  # noqa: F811
    folder = extend(tmp_path / "more", "training.max_steps=1", "training.learning_rate=1e-12")
    before, after = RunFolder(run[0]).tokenizer(), folder.tokenizer()
    initial, _ = load_tensors(RunFolder(run[0]).model_file)
    tensors, _ = load_tensors(folder.path / "state" / "checkpoint.safetensors")
    pieces = after.target_pieces(range(before.target_size, after.target_size))
    former = before.target_vocabulary
    ordinary = former[len(SPECIAL) :]
    parts = {">>es<<": [">>fr<<", ">>de<<"], "w": ordinary, "ñ": ordinary, "á": ["a"], "é": ["e"]}
    assert pieces[0] == ">>es<<" and parts.keys() <= set(pieces)
    for name in ("source_embedding.tokens.weight", "output.bias"):
        old = initial[name].double().numpy()
        new = tensors[f"model.{name}"].double().numpy()
        np.testing.assert_allclose(new[: len(old)], old, atol=1e-6)
        for piece, sources in parts.items():
            mean = np.mean([old[former.index(part)] for part in sources], axis=0)
            np.testing.assert_allclose(new[len(old) + pieces.index(piece)], mean, atol=1e-6)


def test_without_general_validation_files_only_the_new_direction_is_measured(extend, tmp_path):
    extended = extend(tmp_path / "more", "training.max_steps=2")
    assert extended.configuration().data.corpus_directions == (("en", "es"), ("en", "fr"), ("en", "de"))
    assert trained_directions(SimpleNamespace(run=extended)) == [("en", "es")]


def test_synthetic_pairs_of_one_direction_beside_pairs_of_both(extend, spanish, tmp_path):
    synthetic = {"data.synthetic": [f"{spanish}/dev-es.tsv:en-es"]}
    extended = extend(tmp_path / "run", "training.max_steps=2", "data.both_directions=true", **synthetic)
    tokenizer = extended.tokenizer()
    tag, spanish_piece = tokenizer.tag, tokenizer.source_pieces(range(tokenizer.source_size)).index(">>es<<")
    header = (extended.corpus_folder / "index.jsonl").read_text().splitlines()[0]
    stored = CorpusStore(extended.corpus_folder).open(json.loads(header)["identity"])
    openings = [stored.pairs.source(i)[:2].tolist() for i in range(len(stored.pairs))]
    tagged = [opening for opening in openings if tag in opening]
    lines = (spanish / "dev-es.tsv").read_text().splitlines()
    assert len(tagged) == len(lines) and all(set(opening) == {tag, spanish_piece} for opening in tagged)


def test_an_interrupted_extension_gives_the_same_run(extend, spanish, tmp_path):
    settings = ["data.tokenizer.added=3", "training.validate_every=3", "data.both_directions=true"]
    extend(tmp_path / "whole", *settings, "training.max_steps=6")
    extend(tmp_path / "parts", *settings, "training.max_steps=3")
    folder = extend(tmp_path / "parts", *settings, "training.max_steps=6", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    assert folder.configuration().data.tokenizer.languages.keys() == {"de", "fr", "es", "en"}
    assert folder.configuration().data.tokenizer.added == 3


def test_one_direction_alone_and_its_guard(extend, spanish, tmp_path):
    general = [f"{spanish}/dev-{code}.tsv:en-{code}" for code in GENERAL_FILES]
    settings = ["training.max_steps=2", "training.validate_every=1"]
    folder = extend(tmp_path / "more", *settings, **{"data.mix": {}, "data.valid_general": general})
    assert folder.configuration().data.tokenizer.added == ADDED_FOR_LANGUAGES
    (row, *_) = [row for row in folder.metrics() if row["kind"] == "validation"]
    assert {"general_bleu", "general_bleu.en-fr", "general_bleu.en-de"} <= row.keys()


def test_a_language_that_only_validation_has_is_refused(extend, spanish, tmp_path):
    with pytest.raises(UserError, match="does not learn to write it"):
        extend(tmp_path / "more", **{"data.valid": [f"{spanish}/dev-es.tsv:en-it"]})


def test_runs_that_can_not_get_a_language(extend, train, tmp_path):
    with pytest.raises(UserError, match=r"training\.adapter_rank is for the vocabulary as it is"):
        extend(tmp_path / "more", "training.adapter_rank=2")
    with pytest.raises(UserError, match=r"lacks es, and can't learn more languages with training\.adapter_rank"):
        extend(tmp_path / "more", "training.adapter_rank=2", "data.tokenizer.added=0")
    train(tmp_path / "one", "training.max_steps=1")
    with pytest.raises(UserError, match="translates one direction"):
        extend(tmp_path / "more", begin_from=tmp_path / "one")
    assert not (tmp_path / "more").exists()
    shutil.rmtree(tmp_path / "one")
    train(tmp_path / "one", "training.max_steps=1", "data.source_language=en", "data.target_language=fr")
    with pytest.raises(UserError, match="only a multilingual one does"):
        extend(tmp_path / "more", begin_from=tmp_path / "one")
