"""What a multilingual run knows of itself, after each step of its life: directions, candidates and coverage."""

import json

from bitext.pair import Pair
from tests.cli.conftest import call  # noqa: F401
from tests.conftest import SHAPE
from tests.serving.conftest import starting
from translucid.data.readers.corpus import read_pairs
from translucid.engines.target_pieces import pieces_file
from translucid.ground.special import SPECIAL
from translucid.runs.run_folder import RunFolder

SETTINGS = [*SHAPE, "training.max_steps=10", "model.norm=post", "data.tokenizer.vocabulary=300"]
STEPS = ["training.max_steps=2", "training.validate_every=2", "training.batch_tokens=512", "training.max_minutes=null"]
RUNES, THORN = "\u16a0", "\u00fe"


def write_languages(folder, corpus):
    """Write the languages `fr` in capitals and `de`, both with letters of their own; return the training texts."""
    texts = {}
    for split in ("test", "train"):
        pairs = list(read_pairs(corpus / f"{split}.tsv"))[: 5 if split == "test" else None]
        french = [Pair(pair.target.upper() + f" {RUNES}", pair.source) for pair in pairs]
        german = [Pair(pair.source, pair.target.replace("a", THORN)) for pair in pairs]
        for code, rows in (("es", pairs), ("fr", french), ("de", german)):
            lines = [f"{pair.source}\t{pair.target}\n" for pair in rows]
            (folder / f"{split}-{code}.tsv").write_text("".join(lines), encoding="utf-8")
        texts |= {"es": [pair.target for pair in pairs], "en": [pair.source for pair in pairs]}
        texts |= {"fr": [pair.source for pair in french], "de": [pair.target for pair in german]}
    return texts


def check_state(call, run, learned, texts, tests):  # noqa: F811
    """Ask a run, its evaluation and its server for what it has learned, and compare the answers."""
    folder = RunFolder(run)
    data, tokenizer = folder.configuration().data, folder.tokenizer()
    languages = sorted({code for direction in learned for code in direction})
    pairs = {(source, target) for source in languages for target in languages if source != target}
    assert {pair for pair in pairs if pair in data.learned_directions} == learned
    assert {pair for pair in pairs if not data.is_zero_shot(pair)} == learned
    for code in languages:  # coverage: nothing of a learned language is unknown
        assert not any(SPECIAL.unknown in ids for ids in tokenizer.encode_source(texts[code]))
    for pair in pairs:
        pieces = pieces_file(folder, pair, data)
        # There are candidates for a language that the run has learned to write.
        assert (pieces is None) == (pair in learned or pair[1] not in {target for _, target in learned})
        if pieces:
            ids = {*tokenizer.encode_target(texts[pair[1]][:1])[0]} - {*SPECIAL}
            assert {*tokenizer.target_pieces(sorted(ids))} <= {*pieces.read_text("utf-8").split()}
    result = call("evaluate", run, "--test", *tests, "--no-perplexity", "--beam", 1, "--json")
    assert result.code == 0, result.err
    scores = json.loads(result.out).get("directions", {})
    assert {name for name, score in scores.items() if not score["zero_shot"]} >= {
        "-".join(pair) for pair in learned if "-".join(pair) in scores
    }
    assert all(score["zero_shot"] == (tuple(name.split("-")) not in learned) for name, score in scores.items())
    with starting(run) as start:
        offered = start().get("/languages").json()
    sources = {row["code"] for row in offered if {*row["targets"]} - {row["code"]}}
    assert sources == {source for source, _ in learned}
    for row in offered:
        assert {*row["targets"]} <= {row["code"], *(target for _, target in learned)}
        direct = {(row["code"], target) for target in row["targets"] if target not in row.get("pivots", {})}
        assert learned & {(row["code"], code) for code in languages} <= direct
    return offered


def test_all_parts_of_a_run_know_what_it_has_learned(call, corpus, tmp_path, monkeypatch):  # noqa: F811
    texts = write_languages(tmp_path, corpus)
    spanish, spanish_test = f"{corpus}/train.tsv:en-es", f"{tmp_path}/test-es.tsv:en-es"
    tests = [spanish_test, f"{tmp_path}/test-fr.tsv:fr-en"]
    learned = {("en", "es"), ("es", "en"), ("fr", "en"), ("en", "fr")}

    def train(name, *arguments, settings=STEPS):
        result = call("train", *arguments, "--out", tmp_path / name, "--no-tune", "--set", *settings)
        assert result.code == 0, result.err
        return tmp_path / name

    # The files have opposite orders.
    files = ["--train", spanish, f"{tmp_path}/train-fr.tsv:fr-en", "--valid", *tests, "--both-directions"]
    many = train("many", *files, settings=SETTINGS)
    first = check_state(call, many, learned, texts, tests)
    tuned = train("tuned", "--init-from", many, "--train", spanish, "--valid", spanish_test)
    assert check_state(call, tuned, learned, texts, tests) == first
    assert tuned.joinpath("target-pieces/fr.tsv").read_bytes() == many.joinpath("target-pieces/fr.tsv").read_bytes()
    # A second file with the opposite order, and another direction than the last training.
    german, half = f"{tmp_path}/train-de.tsv:en-de", tmp_path / "half.tsv"
    half.write_text("".join(f"{text}\t{text}!\n" for text in texts["de"]), encoding="utf-8")
    added = train(
        "added",
        *("added-language", "--init-from", tuned, "--train", german, f"{half}:de-fr"),
        *("--valid", f"{tmp_path}/test-de.tsv:en-de", "--mix", f"{spanish}=0.3"),
    )
    learned |= {("en", "de"), ("de", "fr")}
    tests.append(f"{tmp_path}/test-de.tsv:en-de")
    second = check_state(call, added, learned, texts, tests)
    assert not RunFolder(added).configuration().data.is_zero_shot(("fr", "en"))
    again = train("again", "--init-from", added, "--train", german, "--valid", f"{tmp_path}/test-de.tsv:en-de")
    check_state(call, again, learned, texts, tests)
    for kind in ("ctranslate2", "huggingface"):
        target = ["--target-language", "es", "--source-language", "en"]
        result = call("export", again, tmp_path / kind, "--to", kind, *target)
        assert result.code == 0, result.err
        imported = tmp_path / f"from-{kind}"
        assert call("import", tmp_path / kind, imported).code == 0
        imported_offer = check_state(call, imported, learned, texts, tests)
        assert sorted(row["code"] for row in imported_offer) == sorted(row["code"] for row in second)
    # The barely trained teacher writes nothing that looks like a translation.
    monkeypatch.setattr(
        "translucid.distillation.training_pairs.EXCLUDED_RULES", ("near-duplicate", "language", "length")
    )
    monkeypatch.setattr("translucid.distillation.training_pairs.repetition_in", lambda source, target: None)
    student = tmp_path / "student"
    files = ["--pairs", spanish, "--valid", spanish_test, "--out", student, "--vocabulary", "teacher"]
    ways = ["--choose", "best", "--beam", 1, "--skip", "align", "--skip", "report", "--student", "student-demo"]
    shape = [setting for setting in SHAPE if not setting.startswith("data.")]
    result = call("distill", again, *files, *ways, "--set", *shape, *STEPS)
    assert result.code == 0, result.err
    check_state(call, student, {("en", "es")}, texts, [spanish_test])
