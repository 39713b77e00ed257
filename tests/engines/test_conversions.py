"""What a converted model depends on, and how it is compared with the original model."""

import json
from types import SimpleNamespace

import ctranslate2
import numpy as np
import pytest

from tests.engines.test_ctranslate2_calls import Pieces
from translucid.engines import agreement, converted
from translucid.engines.ctranslate2 import searching
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.tuned import Tuned


class Run:
    """A run folder without files."""

    def __init__(self, path, digest="model"):
        self.path, self.digest = path, digest

    def model_digest(self):
        return self.digest


class Shape:
    longest = 77

    def __init__(self, **options):
        self.options = options

    def model_dump(self):
        return self.options


def test_the_fingerprint_changes_with_every_dependency(tmp_path, monkeypatch):
    """The fingerprint changes with each dependency; the model is opened with the options of the run."""
    opened = []

    def open_converted(kind, made_from, convert, open_folder):
        assert kind == "ctranslate2"
        opened.append(open_folder)
        return json.dumps(made_from)

    monkeypatch.setattr(searching, "open_converted", open_converted)
    defaults = {"run": Run(tmp_path), "shape": Shape(width=8), "tuned": Tuned(), "adapter": None, "tokenizer": Pieces()}
    (tmp_path / "shortlist.tsv").write_text("\t.\n")

    def fingerprint(**changes):
        arguments = defaults | changes
        configuration = SimpleNamespace(model=arguments["shape"])
        return CTranslate2Engine.of_run(
            arguments["run"],
            configuration,
            arguments["tokenizer"],
            None,
            arguments["tuned"],
            adapter=arguments["adapter"],
            threads=3,
        )

    other_tokenizer = Pieces()
    other_tokenizer.fingerprint = "other"
    first = [fingerprint(), fingerprint(tuned=Tuned(considered="seen pieces"))]
    assert fingerprint() == first[0]
    fingerprints = [
        *first,
        fingerprint(run=Run(tmp_path, "another")),
        fingerprint(shape=Shape(width=9)),
        fingerprint(tuned=Tuned(quantization="int8")),
        fingerprint(adapter=SimpleNamespace(fingerprint="adapter")),
        fingerprint(tokenizer=other_tokenizer),
    ]
    (tmp_path / "shortlist.tsv").write_text("\tx\n")
    fingerprints.append(fingerprint(tuned=Tuned(considered="seen pieces")))
    for name in ("__version__", "equations_digest", "digest"):
        with monkeypatch.context() as patched:
            patched.setattr(converted, name, "0" if name == "__version__" else lambda *_: "0")
            fingerprints.append(fingerprint())
    with monkeypatch.context() as patched:
        patched.setattr(ctranslate2, "__version__", "0")
        fingerprints.append(fingerprint())
    assert len({*fingerprints}) == len(fingerprints)
    options = opened[1].keywords
    assert (options["longest"], options["device"], options["threads"]) == (77, "cpu", 3)
    assert (options["considered"], options["compute_type"]) == ("seen pieces", "default")


def test_the_equations_are_the_code_of_four_packages_without_comments(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for package in ("attention", "kernels", "layers", "models", "data"):
        (tmp_path / package / "part").mkdir(parents=True)
        (tmp_path / package / "part" / "a.py").write_text("f(1)")
        (tmp_path / package / "notes.txt").write_text("1")
    monkeypatch.setattr(agreement.translucid, "__file__", str(tmp_path / "__init__.py"))

    def digest():
        return agreement.equations_digest.__wrapped__()

    first = digest()
    for package in ("attention", "kernels", "layers", "models", "data"):
        file = tmp_path / package / "part" / "a.py"
        (tmp_path / package / "notes.txt").write_text("2")
        assert digest() == first
        file.write_text('"""What it is for."""\n\nf( 1)  # a comment')
        assert digest() == first
        file.write_text("f(2)")
        assert (digest() == first) is (package == "data")
        file.write_text("f(1)")
    with monkeypatch.context() as patch:
        patch.setattr(agreement, "_code_digest", None)  # fails if the files are parsed again
        assert digest() == first
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "attention" / "notes.txt"))  # a file, so that nothing is kept
    assert digest() == first


def test_random_sentences_have_all_pieces_but_the_special_ones():
    scored = []

    class Engine:
        def forced(self, pairs):
            scored.append(pairs)
            return [[-1.0, 0.25] * len(target) for _, target in pairs]

    tokenizer = SimpleNamespace(source_opening=(5,), target_opening=(), source_size=9, target_size=7)
    assert agreement.largest_difference(Engine().forced, Engine().forced, tokenizer, 99) == 0.0
    assert scored[0] == scored[1]
    for (source, target), length in zip(scored[0], (1, 3, 6, 12, 24, 48), strict=True):
        assert (len(source), len(target)) == (length + 2, length + 1)
        assert (source[0], source[-1], target[-1]) == (5, 3, 3)
    assert {*scored[0][-1][0][1:-1]} == {*range(4, 9)} and {*scored[0][-1][1][:-1]} == {*range(4, 7)}


def test_a_difference_is_the_mean_of_a_sentence_and_refused_above_the_tolerance(tmp_path):
    assert agreement._mean_difference([-1.0, -2.0, 0.0, -4.0], [-1.5, -1.0, 0.0, -4.0]) == 0.375
    assert agreement._mean_difference([-1.0, np.inf], [-1.5, -1.0]) == 0.0
    agreement.refuse_disagreement(0.02, tmp_path)
    for difference in (0.0201, float("nan")):
        with pytest.raises(agreement.UserError, match=r"differ by .* a token.*Use `engine=\"torch\"`, or `export_onn"):
            agreement.refuse_disagreement(difference, tmp_path)
