"""Shortlists made of attention, and the fastest way to translate."""

import copy
from pathlib import Path

import pytest
import torch

from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import TorchEngine
from translucid.decoding.shortlist import read_shortlist
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.piece_links import learn_links, seen_pieces
from translucid.engines.trials import Comparison, Trial, all_configurations, fastest, trials
from translucid.engines.tuned import Tuned
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
        model.output.bias[:3] -= 20  # as in a trained one: what may not be said gets no probability
    return model


@pytest.fixture(scope="module")
def shortlist(model, tokenizer, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "shortlist.tsv"
    sides = (tokenizer.encode_source([p.source for p in PAIRS]), tokenizer.encode_target([p.target for p in PAIRS]))
    done = []
    links = learn_links(model, [([*s, 3], [*t, 3]) for s, t in zip(*sides, strict=True)], CPU, done.append)
    assert sum(done) == len(PAIRS)
    file.write_text(links.shortlist(tokenizer, each=8, always=10), encoding="utf-8")
    return file


def both_engines(model, tokenizer, considered, file):
    own = TorchEngine.of(model, tokenizer, CPU).narrowed(considered, file, tokenizer)
    return own, CTranslate2Engine.of(own, tokenizer, considered=considered, shortlist=file)


def lines_of(file):
    return dict(line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())


def test_a_shortlist_names_pieces_that_stand_together(shortlist, tokenizer):
    lines = lines_of(shortlist)
    frequent = lines.pop("").split()
    assert len(frequent) <= 10
    assert "." in frequent or "▁." in frequent
    pieces = set(tokenizer.target_pieces(range(4, tokenizer.target_size)))
    together = {}
    for pair in PAIRS:
        source, target = tokenizer.encode_source([pair.source])[0], tokenizer.encode_target([pair.target])[0]
        for piece in tokenizer.source_pieces(source):
            together.setdefault(piece, set()).update(tokenizer.target_pieces(target))
    for piece, found in lines.items():
        names = set(found.split())
        assert names <= pieces
        assert len(names) <= 9
        assert names <= together.get(piece, set()) | {piece}
        assert piece not in pieces or piece in names
        assert not names & set(frequent) - {piece}


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_only_what_is_on_the_shortlist_is_said(model, tokenizer, shortlist, engine):
    own = TorchEngine.of(model, tokenizer, CPU)
    fast = CTranslate2Engine.of(own, tokenizer, considered="small shortlist", shortlist=shortlist)
    engine = fast if engine == "ctranslate2" else own.narrowed("small shortlist", shortlist, tokenizer)
    lines = lines_of(shortlist)
    options = DecodingOptions(beam=3, max_length_ratio=1, max_length_extra=3, max_loops=0)
    sources = [[*ids, 3] for ids in tokenizer.encode_source([pair.source for pair in PAIRS[:10]])]
    said = []
    for source in sources:
        allowed = set(lines[""].split())
        for piece in tokenizer.source_pieces(source[:-1]):
            allowed |= set(lines.get(piece, "").split())
        (found,) = engine.decode([source], options)
        assert set(tokenizer.target_pieces(found[0].tokens)) <= allowed
        said.append(found[0].tokens)
    assert any(said)
    assert said != [found[0].tokens for found in own.decode(sources, options)]


def test_with_a_shortlist_too_both_engines_say_the_same(model, tokenizer, shortlist):
    engines = both_engines(model, tokenizer, "small shortlist", shortlist)
    options = DecodingOptions(beam=3, max_length_ratio=1, max_length_extra=3, max_loops=0)
    for ids in tokenizer.encode_source([pair.source for pair in PAIRS[:10]]):
        ((mine,),), ((theirs,),) = (engine.decode([[*ids, 3]], options) for engine in engines)
        assert mine.tokens == theirs.tokens


@pytest.fixture(scope="module")
def seen(tokenizer, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "seen.tsv"
    done = []
    file.write_text(seen_pieces(tokenizer, (pair.target for pair in PAIRS), done.append), encoding="utf-8")
    assert sum(done) == len(PAIRS)
    return file


def test_the_seen_pieces_are_those_of_the_target_texts(tokenizer, seen):
    found = {
        piece
        for ids in tokenizer.encode_target([pair.target for pair in PAIRS])
        for piece in tokenizer.target_pieces(ids)
    }
    assert lines_of(seen) == {"": seen.read_text(encoding="utf-8").strip()}
    assert set(lines_of(seen)[""].split()) == found
    assert len(found) < tokenizer.target_size - 4


def test_with_the_seen_pieces_alone_all_engines_say_the_same_whatever_else_is_translated(model, tokenizer, seen):
    engines = both_engines(model, tokenizer, "seen pieces", seen)
    options = DecodingOptions(beam=3, max_length_ratio=1, max_length_extra=3, max_loops=0)
    sources = [[*ids, 3] for ids in tokenizer.encode_source([pair.source for pair in PAIRS])]
    mine, theirs = (engine.decode(sources, options) for engine in engines)
    assert [found[0].tokens for found in theirs] == [found[0].tokens for found in mine]
    assert [engines[1].decode([source], options)[0][0].tokens for source in sources] == [
        found[0].tokens for found in theirs
    ]
    said = {token for found in theirs for token in found[0].tokens}
    assert set(tokenizer.target_pieces(sorted(said))) <= set(lines_of(seen)[""].split())


def test_no_other_piece_is_said_when_a_loop_is_forbidden(model, tokenizer, seen):
    loved = copy.deepcopy(model)
    pieces = tokenizer.target_pieces(range(tokenizer.target_size))
    on = [i for i, piece in enumerate(pieces) if piece in lines_of(seen)[""].split()]
    off = [i for i in range(4, len(pieces)) if i not in on]
    looped, other, *_ = (i for i in on if pieces[i].startswith("▁"))
    with torch.no_grad():
        loved.output.bias[looped] += 20
        loved.output.bias[off] += 15  # what would be said instead, were it not left out
        loved.output.bias[other] += 10
    source = [*tokenizer.encode_source([PAIRS[0].source])[0], 3]
    for engine in both_engines(loved, tokenizer, "seen pieces", seen):
        ((found,),) = engine.decode([source], DecodingOptions(beam=2, max_loops=2, max_length_ratio=1))
        assert other in found.tokens
        assert set(found.tokens) <= set(on)


def test_a_piece_that_is_a_space_of_another_kind_can_be_said(tmp_path):
    pairs = [Pair("no !", "non\u00a0!"), Pair("yes ?", "oui\u00a0?")] * 5
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=22, normalisation="identity"), seed=1)
    (space,) = (i for i, piece in enumerate(tokenizer.target_pieces(range(22))) if piece == "\u00a0!")
    (tmp_path / "seen.tsv").write_text(seen_pieces(tokenizer, [pair.target for pair in pairs]), encoding="utf-8")
    options = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
    model = build_model(options, 22, 22).eval()
    with torch.no_grad():
        model.output.bias[space] += 99
    (source,) = tokenizer.encode_source(["no !"])
    for engine in both_engines(model, tokenizer, "seen pieces", tmp_path / "seen.tsv"):
        ((found, *_),) = engine.decode([[*source, 3]], DecodingOptions(beam=2, max_loops=0))
        assert set(found.tokens) == {space}


def test_a_shortlist_of_everything_changes_nothing(model, tokenizer, tmp_path):
    (tmp_path / "all.tsv").write_text("\t" + " ".join(tokenizer.target_pieces(range(4, tokenizer.target_size))))
    own = TorchEngine.of(model, tokenizer, CPU)
    sources = [[*ids, 3] for ids in tokenizer.encode_source([pair.source for pair in PAIRS[:10]])]
    for options in (DecodingOptions(beam=3, nbest=2, max_length_extra=5), DecodingOptions(sample=True)):
        whole, same = (
            e.decode(sources, options) for e in (own, own.narrowed("seen pieces", tmp_path / "all.tsv", tokenizer))
        )
        assert same == whole


def test_a_shortlist_holds_the_lists_of_all_words(shortlist, tokenizer):
    lines = lines_of(shortlist)
    ids = {piece: i for i, piece in enumerate(tokenizer.target_pieces(range(tokenizer.target_size)))}
    sources = tokenizer.encode_source([pair.source for pair in PAIRS[:2]])
    pieces = read_shortlist(shortlist, tokenizer).pieces([*ids, 3] for ids in sources).tolist()
    read = tokenizer.source_pieces([*sources[0], *sources[1]])
    assert {*read} <= {*lines}
    words = " ".join(lines[piece] for piece in ("", *read))
    assert pieces == sorted({0, 1, 2, 3, *(ids[piece] for piece in words.split())})


def test_every_way_is_tried_and_leaves_the_model_as_it_was(model, tokenizer, shortlist):
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    options = DecodingOptions(beam=2, max_length_ratio=1, max_length_extra=3)
    lists = {"small shortlist": shortlist}
    tried = list(trials(model, tokenizer, PAIRS[:10], options, all_configurations(model, lists), lists))
    assert [trial.tuned for trial in tried] == [
        Tuned(),
        Tuned(quantization="int8"),
        Tuned(considered="small shortlist"),
        Tuned(quantization="int8", considered="small shortlist"),
        Tuned(engine="torch"),
        Tuned(engine="torch", considered="small shortlist"),
    ]
    assert all(trial.sentences_per_second > 0 for trial in tried)
    assert tried[0].score == pytest.approx(tried[-2].score, abs=1)
    assert tried[0].same and {trial.metric for trial in tried} == {"chrF"}  # BLEU can't tell how bad it is
    assert all(torch.equal(weights, before[name]) for name, weights in model.state_dict().items())


def test_the_fastest_that_costs_nearly_nothing_is_chosen():
    full, small = Tuned(), Tuned(quantization="int8")
    words, torch_ = Tuned(considered="small shortlist"), Tuned(engine="torch")
    tried = [Trial(full, 100, 30.0), Trial(small, 150, 29.95), Trial(words, 300, 29.0), Trial(torch_, 20, 30.1)]
    assert fastest(tried, 0.1).tuned == small
    assert fastest(tried, 1.5).tuned == words
    assert fastest(tried, 0).tuned == full


def test_where_the_score_says_nothing_only_what_is_the_same_is_chosen():
    """0.00 is within 0.2 of 0.00, whatever a way has lost."""
    ways = {"full": Tuned(), "small": Tuned(quantization="int8"), "torch": Tuned(engine="torch")}
    tried = [
        Trial(ways["full"], 100, 0.0, tells=False, same=True),
        Trial(ways["small"], 300, 0.0, tells=False, same=False),
        Trial(ways["torch"], 150, 0.0, tells=False, same=True),
    ]
    assert fastest(tried, 0.2).tuned == ways["torch"]
    assert fastest(tried[:2], 0.2).tuned == ways["full"]


def test_an_export_that_can_not_be_judged_is_refused():
    """Of one-word targets BLEU is 0.00, right or wrong: chrF tells."""
    pairs = [Pair(f"a {word}", word) for word in ("perro", "gato", "casa", "playa", "libro")]
    right = [pair.target for pair in pairs]
    half = [*right[:3], "x", "x"]
    found = Comparison.of(right, half, pairs, "int8", "es")
    assert (found.metric, found.original, found.tells) == ("chrF", 100, True)
    with pytest.raises(UserError, match=r"int8 costs \d+\.\d\d chrF"):
        found.refuse_loss(Path("run"))
    Comparison.of(right, right, pairs, "int8", "es").refuse_loss(Path("run"))
    with pytest.raises(UserError, match="can't be compared on --check"):
        Comparison.of(["zz"] * 5, ["qq"] * 5, pairs, "int8", "es").refuse_loss(Path("run"))
    Comparison.of(["zz"] * 5, ["zz"] * 5, pairs, "int8", "es").refuse_loss(Path("run"))  # nothing is lost
