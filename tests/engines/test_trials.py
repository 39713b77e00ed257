"""Shortlists learned from attention, and the choice of the fastest engine configuration."""

import copy
from itertools import chain
from pathlib import Path

import pytest
import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.decoding.shortlist import read_shortlist
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.tuned import Tuned
from translucid.engines.tuning import Comparison, Trial, all_configurations, fastest, learn_links, seen_pieces, trials
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

CPU = torch.device("cpu")
PAIRS = [Pair(p.source, p.target) for p in generate(60, max_words=8)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=120), seed=1)


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(1)
    options = TransformerOptions(width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=1)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size).eval()
    with torch.no_grad():
        model.output.bias[:3] -= 20  # as in a trained model, special tokens are improbable
    return model


@pytest.fixture(scope="module")
def shortlist(model, tokenizer, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "shortlist.tsv"
    sides = (tokenizer.encode_source([p.source for p in PAIRS]), tokenizer.encode_target([p.target for p in PAIRS]))
    progress = []
    links = learn_links(model, [([*s, 3], [*t, 3]) for s, t in zip(*sides, strict=True)], CPU, progress.append)
    assert sum(progress) == len(PAIRS)
    file.write_text(links.shortlist(tokenizer, per_source=8, always=10), encoding="utf-8")
    return file


def both_engines(model, tokenizer, considered, file):
    torch_engine = TorchEngine.of(model, tokenizer, CPU).restricted(considered, file, tokenizer)
    return torch_engine, CTranslate2Engine.of(torch_engine, tokenizer, considered=considered, shortlist=file)


def sources_of(tokenizer, pairs):
    texts = [pair.source for pair in pairs]
    return [[*ids, 3] for ids in tokenizer.encode_source(texts)]


def lines_of(file):
    return dict(line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())


def test_a_shortlist_names_pieces_that_stand_together(shortlist, tokenizer):
    lines = lines_of(shortlist)
    frequent = lines.pop("").split()
    assert len(frequent) <= 10
    assert "." in frequent or "▁." in frequent
    pieces = set(tokenizer.target_pieces(range(4, tokenizer.target_size)))
    cooccurring = {}
    for pair in PAIRS:
        source, target = tokenizer.encode_source([pair.source])[0], tokenizer.encode_target([pair.target])[0]
        for piece in tokenizer.source_pieces(source):
            cooccurring.setdefault(piece, set()).update(tokenizer.target_pieces(target))
    for piece, line in lines.items():
        names = set(line.split())
        assert names <= pieces
        assert len(names) <= 9
        assert names <= cooccurring.get(piece, set()) | {piece}
        assert piece not in pieces or piece in names
        assert not names & set(frequent) - {piece}


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_outputs_have_only_pieces_of_the_shortlist(model, tokenizer, shortlist, engine):
    torch_engine = TorchEngine.of(model, tokenizer, CPU)
    fast = CTranslate2Engine.of(torch_engine, tokenizer, considered="small shortlist", shortlist=shortlist)
    engine = fast if engine == "ctranslate2" else torch_engine.restricted("small shortlist", shortlist, tokenizer)
    lines = lines_of(shortlist)
    # With a beam, the outputs that CTranslate2 cuts off would be those of PyTorch.
    options = DecodingOptions(beam=1, max_length_ratio=1, max_length_extra=3, max_loops=0)
    sources = sources_of(tokenizer, PAIRS[:10])
    outputs = []
    for source in sources:
        allowed = set(lines[""].split())
        for piece in tokenizer.source_pieces(source[:-1]):
            allowed |= set(lines.get(piece, "").split())
        (hypotheses,) = engine.decode(SearchRequest([source], options))
        assert set(tokenizer.target_pieces(hypotheses[0].tokens)) <= allowed
        outputs.append(hypotheses[0].tokens)
    assert any(outputs)
    assert outputs != [hypotheses[0].tokens for hypotheses in torch_engine.decode(SearchRequest(sources, options))]


def test_both_engines_give_the_same_output_with_a_shortlist(model, tokenizer, shortlist):
    engines = both_engines(model, tokenizer, "small shortlist", shortlist)
    options = DecodingOptions(beam=3, max_length_ratio=1, max_length_extra=3, max_loops=0)
    for source in sources_of(tokenizer, PAIRS[:10]):
        ((expected,),), ((hypothesis,),) = (engine.decode(SearchRequest([source], options)) for engine in engines)
        assert expected.tokens == hypothesis.tokens


@pytest.fixture(scope="module")
def vocabulary_file(tokenizer, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "seen.tsv"
    progress = []
    file.write_text(seen_pieces(tokenizer, (pair.target for pair in PAIRS), progress.append), encoding="utf-8")
    assert sum(progress) == len(PAIRS)
    return file


def test_the_seen_pieces_are_those_of_the_target_texts(tokenizer, vocabulary_file):
    ids = chain.from_iterable(tokenizer.encode_target([pair.target for pair in PAIRS]))
    expected = set(tokenizer.target_pieces([*ids]))
    assert lines_of(vocabulary_file) == {"": vocabulary_file.read_text(encoding="utf-8").strip()}
    assert set(lines_of(vocabulary_file)[""].split()) == expected
    assert len(expected) < tokenizer.target_size - 4


def test_with_the_seen_pieces_alone_all_engines_say_the_same_whatever_else_is_translated(
    model, tokenizer, vocabulary_file
):
    engines = both_engines(model, tokenizer, "seen pieces", vocabulary_file)
    options = DecodingOptions(beam=3, max_length_ratio=1, max_length_extra=3, max_loops=0)
    sources = sources_of(tokenizer, PAIRS[:20])
    expected, results = (engine.decode(SearchRequest(sources, options)) for engine in engines)
    assert [nbest[0].tokens for nbest in results] == [nbest[0].tokens for nbest in expected]
    assert [engines[1].decode(SearchRequest([source], options))[0][0].tokens for source in sources] == [
        nbest[0].tokens for nbest in results
    ]
    tokens = {token for nbest in results for token in nbest[0].tokens}
    assert set(tokenizer.target_pieces(sorted(tokens))) <= set(lines_of(vocabulary_file)[""].split())


def test_a_forbidden_loop_gives_no_piece_outside_of_the_list(model, tokenizer, vocabulary_file):
    biased = copy.deepcopy(model)
    pieces = tokenizer.target_pieces(range(tokenizer.target_size))
    allowed = [i for i, piece in enumerate(pieces) if piece in lines_of(vocabulary_file)[""].split()]
    excluded = [i for i in range(4, len(pieces)) if i not in allowed]
    looped, alternative, *_ = (i for i in allowed if pieces[i].startswith("▁"))
    with torch.no_grad():
        biased.output.bias[looped] += 20
        biased.output.bias[excluded] += 15  # would be chosen instead if they were not excluded
        biased.output.bias[alternative] += 10
    source = [*tokenizer.encode_source([PAIRS[0].source])[0], 3]
    for engine in both_engines(biased, tokenizer, "seen pieces", vocabulary_file):
        ((hypothesis,),) = engine.decode(
            SearchRequest([source], DecodingOptions(beam=2, max_loops=2, max_length_ratio=1))
        )
        assert alternative in hypothesis.tokens
        assert set(hypothesis.tokens) <= set(allowed)


def test_pieces_with_other_kinds_of_spaces_can_be_output(tmp_path):
    pairs = [Pair("no !", "non\u00a0!"), Pair("yes ?", "oui\u00a0?")] * 5
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=22, normalization="identity"), seed=1)
    (space,) = (i for i, piece in enumerate(tokenizer.target_pieces(range(22))) if piece == "\u00a0!")
    (tmp_path / "seen.tsv").write_text(seen_pieces(tokenizer, [pair.target for pair in pairs]), encoding="utf-8")
    options = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
    model = build_model(options, 22, 22).eval()
    with torch.no_grad():
        model.output.bias[space] += 99
    (source,) = tokenizer.encode_source(["no !"])
    for engine in both_engines(model, tokenizer, "seen pieces", tmp_path / "seen.tsv"):
        ((hypothesis, *_),) = engine.decode(SearchRequest([[*source, 3]], DecodingOptions(beam=2, max_loops=0)))
        assert set(hypothesis.tokens) == {space}


def test_a_shortlist_of_everything_changes_nothing(model, tokenizer, tmp_path):
    (tmp_path / "all.tsv").write_text("\t" + " ".join(tokenizer.target_pieces(range(4, tokenizer.target_size))))
    torch_engine = TorchEngine.of(model, tokenizer, CPU)
    sources = sources_of(tokenizer, PAIRS[:10])
    for options in (DecodingOptions(beam=3, nbest=2, max_length_extra=5), DecodingOptions(sample=True)):
        expected, narrowed = (
            e.decode(SearchRequest(sources, options))
            for e in (
                torch_engine,
                torch_engine.restricted("seen pieces", tmp_path / "all.tsv", tokenizer),
            )
        )
        assert narrowed == expected


def test_a_shortlist_holds_the_lists_of_all_words(shortlist, tokenizer):
    lines = lines_of(shortlist)
    ids = {piece: i for i, piece in enumerate(tokenizer.target_pieces(range(tokenizer.target_size)))}
    sources = tokenizer.encode_source([pair.source for pair in PAIRS[:2]])
    pieces = read_shortlist(shortlist, tokenizer).pieces([*ids, 3] for ids in sources).tolist()
    source_pieces = tokenizer.source_pieces([*sources[0], *sources[1]])
    assert {*source_pieces} <= {*lines}
    words = " ".join(lines[piece] for piece in ("", *source_pieces))
    assert pieces == sorted({0, 1, 2, 3, *(ids[piece] for piece in words.split())})


def test_every_configuration_is_tried_without_changing_the_model(model, tokenizer, shortlist):
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    options = DecodingOptions(beam=2, max_length_ratio=1, max_length_extra=3)
    lists = {"small shortlist": shortlist}
    results = list(trials(model, tokenizer, PAIRS[:3], options, all_configurations(model, lists), lists))
    assert [trial.tuned for trial in results] == [
        Tuned(),
        Tuned(quantization="int8"),
        Tuned(considered="small shortlist"),
        Tuned(quantization="int8", considered="small shortlist"),
        Tuned(engine="torch"),
        Tuned(engine="torch", considered="small shortlist"),
    ]
    assert all(trial.sentences_per_second > 0 for trial in results)
    assert results[0].score == pytest.approx(results[-2].score, abs=1)
    assert results[0].same and {trial.metric for trial in results} == {"chrF"}  # BLEU is too low to compare
    assert all(torch.equal(weights, before[name]) for name, weights in model.state_dict().items())


def test_the_fastest_configuration_within_the_allowed_loss_is_chosen():
    default, int8 = Tuned(), Tuned(quantization="int8")
    shortlisted, torch_engine = Tuned(considered="small shortlist"), Tuned(engine="torch")
    results = [
        Trial(default, 100, 30.0),
        Trial(int8, 150, 29.95),
        Trial(shortlisted, 300, 29.0),
        Trial(torch_engine, 20, 30.1),
    ]
    assert fastest(results, 0.1).tuned == int8
    assert fastest(results, 1.5).tuned == shortlisted
    assert fastest(results, 0).tuned == default


def test_without_meaningful_scores_only_identical_translations_are_allowed():
    """A score of 0.00 is within 0.2 of 0.00 for any translations."""
    configurations = {"full": Tuned(), "small": Tuned(quantization="int8"), "torch": Tuned(engine="torch")}
    results = [
        Trial(configurations["full"], 100, 0.0, is_meaningful=False, same=True),
        Trial(configurations["small"], 300, 0.0, is_meaningful=False, same=False),
        Trial(configurations["torch"], 150, 0.0, is_meaningful=False, same=True),
    ]
    assert fastest(results, 0.2).tuned == configurations["torch"]
    assert fastest(results[:2], 0.2).tuned == configurations["full"]


def test_an_export_that_can_not_be_judged_is_refused():
    """BLEU of one-word targets is always 0.00, so chrF is used."""
    pairs = [Pair(f"a {word}", word) for word in ("perro", "gato", "casa", "playa", "libro")]
    references = [pair.target for pair in pairs]
    hypotheses = [*references[:3], "x", "x"]
    comparison = Comparison.of(references, hypotheses, pairs, "int8", "es")
    assert (comparison.metric, comparison.original, comparison.is_meaningful) == ("chrF", 100, True)
    with pytest.raises(UserError, match=r"int8 costs \d+\.\d\d chrF"):
        comparison.refuse_loss(Path("run"))
    Comparison.of(references, references, pairs, "int8", "es").refuse_loss(Path("run"))
    with pytest.raises(UserError, match="can't be compared on `check`"):
        Comparison.of(["zz"] * 5, ["qq"] * 5, pairs, "int8", "es").refuse_loss(Path("run"))
    Comparison.of(["zz"] * 5, ["zz"] * 5, pairs, "int8", "es").refuse_loss(Path("run"))  # nothing is lost
