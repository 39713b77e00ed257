"""Multilingual models: the language piece selects the direction, and runs resume exactly."""

import io
import json
from random import Random

import pytest

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.filtering import Filter
from translucid.data.stores.chunked import INDEX
from translucid.data.stores.store import CorpusStore
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import run_experiment
from translucid.training.extras.directions import balanced

from ..conftest import SETTINGS
from .test_resume import assert_same_run

WORDS = ["ba", "be", "bi", "bo", "bu", "da", "de", "di"]


@pytest.fixture(scope="session")
def files(made_once):
    """Write pairs of three words: for "fr" in capitals, for "de" in the reverse order."""

    def fill(folder):
        folder.mkdir()
        random = Random(1)
        for split, count in (("train", 800), ("dev", 40)):
            sources = [random.choices(WORDS, k=3) for _ in range(count)]
            upper = [f"{' '.join(words)}\t{' '.join(words).upper()}\n" for words in sources]
            turned = [f"{' '.join(words)}\t{' '.join(words[::-1])}\n" for words in sources]
            (folder / f"{split}-fr.tsv").write_text("".join(upper))
            (folder / f"{split}-de.tsv").write_text("".join(turned[: count // 2]))

    return made_once("directions-files", fill)


def train(files, out, *settings, output=None, resume=False, codes=("fr", "de"), **overrides):
    for split, key in (("train", "data.train"), ("dev", "data.valid")):
        overrides.setdefault(key, [f"{files}/{split}-{code}.tsv:en-{code}" for code in codes])
    assignments = ["data.subword_dropout=0", "data.tokenizer.vocabulary=40", *settings]
    configuration = resolve(assignments=[*SETTINGS, *assignments], overrides=overrides)
    console = Console(quiet=output is None, file=output, width=1000)
    return run_experiment(configuration, out, resume=resume, device="cpu", console=console)


@pytest.fixture(scope="session")
def run(files, made_once):
    """Train both directions; return the run folder and its output. Another file adds a third one."""

    def fill(folder):
        folder.mkdir()
        learning = ["training.max_steps=240", "training.validate_every=120", "training.accumulate=1", "model.dropout=0"]
        learning += ["training.warmup=30", "training.learning_rate=0.02", "training.batch_tokens=300"]
        learning += ["model.width=32", "training.averaging=0.9", "training.cooldown=0.5"]
        output = io.StringIO()
        train(files, folder / "both", *learning, output=output)
        (folder / "output").write_text(output.getvalue())

    folder = made_once("directions", fill)
    return folder / "both", (folder / "output").read_text()


def test_the_language_decides_what_is_written(run):
    source, upper, turned = "ba di bo", "BA DI BO", "bo di ba"
    french = Translator.load(run[0], "cpu", "torch", target="fr")
    german = french.between("en", "de")
    assert french.translate(source).text == upper
    assert german.translate(source).text == turned
    with pytest.raises(UserError, match="target language"):
        Translator.load(run[0], "cpu", "torch")


def test_each_direction_is_validated(run):
    row = [row for row in RunFolder(run[0]).metrics() if row["kind"] == "validation"][-1]
    # Three words are too few for BLEU, so chrF decides.
    assert row["chrf"] == pytest.approx((row["chrf.en-fr"] + row["chrf.en-de"]) / 2, rel=1e-4)
    assert min(row["chrf.en-fr"], row["chrf.en-de"]) > 95
    lines = run[1].splitlines()
    (first, *_) = [number for number, line in enumerate(lines) if line.startswith("validation at step 240")]
    assert "mean chrF" in lines[first]
    assert lines[first + 1].split()[0] == "en-fr" and lines[first + 2].split()[0] == "en-de"


def test_sources_begin_with_the_piece_of_their_target_language(run):
    folder = RunFolder(run[0])
    header = (folder.corpus_folder / INDEX).read_text().splitlines()[0]
    stored = CorpusStore(folder.corpus_folder).open(json.loads(header)["identity"])
    pieces = [folder.tokenizer().source_pieces(stored.pairs.source(row))[0] for row in (0, 799, 800, 1199)]
    assert stored.sizes == [800, 400] and pieces == [">>fr<<", ">>fr<<", ">>de<<", ">>de<<"]


def test_a_resumed_run_has_the_same_weights(files, tmp_path):
    settings = ["data.temperature=5", "training.select_by=worst"]
    train(files, tmp_path / "whole", *settings)
    train(files, tmp_path / "parts", *settings, "training.max_steps=7")
    train(files, tmp_path / "parts", *settings, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    row = [row for row in RunFolder(tmp_path / "whole").metrics() if row["kind"] == "validation"][-1]
    assert row["chrf.en-fr"] != row["chrf.en-de"]


def test_other_directions_can_not_be_resumed(files, tmp_path):
    train(files, tmp_path / "run", "training.max_steps=1")
    turned = [f"{files}/train-fr.tsv:en-de", f"{files}/train-de.tsv:en-fr"]
    with pytest.raises(UserError, match="the training text"):
        train(files, tmp_path / "run", "training.max_steps=2", resume=True, **{"data.train": turned})


@pytest.mark.parametrize("opposite", [False, True])
def test_the_vocabulary_is_learned_from_balanced_text_of_all_files(opposite):
    french = [Pair(f"fr{n}", "x") for n in range(1600)]
    more = [Pair(f"fr{n}", "x") for n in range(1600, 3200)]
    german = [Pair(f"de{n}", "x") for n in range(100)]
    corpora = {("a", ("en", "fr")): french, ("a", ("fr", "en")): [pair.swapped for pair in french]}
    if opposite:  # a file of the other order, which is read in this order only
        corpora["b", ("fr", "en")] = [pair.swapped for pair in more]
    else:
        corpora["b", ("en", "fr")] = more
    corpora["c", ("en", "de")] = german
    names, directions = zip(*corpora, strict=True)
    train = Corpora([*corpora.values()], [], "", directions=directions, names=names)
    sample = ["".join(pair)[-8:] for pair in balanced(train, Filter(), 1000, seed=1)]
    # 32^(1/5) is 2: French, with 32 times as much text, gets two thirds of the sample.
    assert sum("fr" in text for text in sample) == 667 and sum("de" in text for text in sample) == 333
    assert len({text for text in sample if "fr" in text}) == 667
