"""The stages of a translation, with an engine that records its calls."""

from types import SimpleNamespace

import pytest

from translucid.data.placeholders import Masked
from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.minimum_risk import MinimumRisk
from translucid.engines.noisy_channel import UNREAD, WEIGHTS, ChannelWeights, NoisyChannel
from translucid.engines.stages import MOST_PIECES, SearchStages
from translucid.ground.errors import UserError

VOCABULARY = ["<pad>", "<unk>", "<s>", "</s>", "a", "b", "c"]


class Tokens:
    """A tokenizer with a piece for each letter."""

    source_opening = target_opening = ()

    def decode(self, ids):
        return "".join(VOCABULARY[i] for i in ids)

    def mask(self, text):
        return Masked(text, {})

    def encode_source(self, texts):
        return [list(map(VOCABULARY.index, text.lower())) for text in texts]

    encode_target = encode_source


class Engine:
    """Returns two hypotheses for each sentence; `calls` are the arguments of each search."""

    def __init__(self):
        self.calls = []

    def __str__(self):
        return "an engine"

    def decode(self, request):
        sentences, options = request.sentences, request.options
        self.calls.append((list(sentences), options, request.numbers))
        request.report(len(sentences))
        return [[Hypothesis([4], -1.0, -1.0), Hypothesis([5], -2.0, -2.0)][: options.nbest] for _ in sentences]


class Step:
    """A pipeline step that adds a letter to each text."""

    def apply(self, text, model_text):
        return model_text + "c"


class Reverse:
    """A ranking that reverses n-best lists of two."""

    needs_beam = True

    def __str__(self):
        return "a ranking"

    def widened(self, options):
        return options.model_copy(update={"nbest": 2})

    def __call__(self, pieces, nbest_lists, options):
        assert options.nbest == 2
        return [nbest[::-1] for nbest in nbest_lists]


class Constraint:
    """A constraint that adds a hypothesis in front, and keeps two for a ranking."""

    def __init__(self, name, annotated=False):
        self.name, self.annotated = name, annotated
        self.calls = []

    def __str__(self):
        return self.name

    def __call__(self, pieces, request, nbest_lists, engine):
        source_ids, options = request.sentences, request.options
        self.calls.append((pieces, source_ids, options))
        return [[Hypothesis([6], -3.0, -3.0), *nbest] for nbest in nbest_lists]

    def complete(self, piece, nbest):
        return nbest[:2]


def piece(text, *ids):
    return Piece(text, [*ids, 3] if ids else [], "", masked=Masked(text, {}))


def stages(*steps, **options):
    return SearchStages(TextPipeline(Tokens(), 99, steps=steps), Engine(), **options)


BEAM = DecodingOptions(beam=2, nbest=1)
TEXTS = [[piece("a", 4), piece("1"), piece("A", 4)], [], [piece("b", 5), piece("a", 4)]]


def test_equal_pieces_are_searched_once():
    search_stages, progress = stages(), []
    results = search_stages.search(TEXTS, BEAM, 0, progress.append)
    ((sentences, options, numbers),) = search_stages.engine.calls
    assert (sentences, options, numbers) == ([[4, 3], [5, 3]], BEAM, None)
    assert [list(map(len, nbest_lists)) for nbest_lists in results] == [[1, 1], [], [1, 1]]
    assert progress == [1, 2] and results[0][0] is results[0][1] is results[2][1] is not results[2][0]
    assert search_stages.search([[piece("a", 4)]], BEAM, 0, progress.append) and progress == [1, 2, 1]


@pytest.mark.parametrize("stage", [{}, {"constraints": (Constraint("x"),)}, {"ranking": Reverse()}])
def test_texts_with_the_same_ids_are_searched_apart_where_a_stage_reads_them(stage):
    search_stages = stages(*([] if stage else [Step()]), **stage)
    search_stages.search(TEXTS, BEAM, 0)
    assert len(search_stages.engine.calls[0][0]) == 3  # a, A, b
    assert search_stages.engine.calls[0][0][0] == ([4, 3] if stage else [4, 6, 3])


def test_samples_depend_on_the_place_of_a_piece():
    search_stages = stages()
    sampling = BEAM.model_copy(update={"sample": True})
    search_stages.search(TEXTS, sampling, 5)
    ((sentences, _, numbers),) = search_stages.engine.calls
    assert sentences == [[4, 3], [4, 3], [5, 3], [4, 3]]
    start = 7 * MOST_PIECES
    assert numbers == [5 * MOST_PIECES, 5 * MOST_PIECES + 1, start, start + 1] and MOST_PIECES == 2**32


def test_constraints_and_the_ranking_follow_the_search():
    first, second = Constraint("x"), Constraint("y", annotated=True)
    search_stages = stages(Step(), constraints=(first,), ranking=Reverse()).constrained(second)
    assert str(search_stages) == "an engine, x, y, ranked by a ranking" and str(stages()) == "an engine"
    pieces = [piece("a", 4)]
    ((best,),) = search_stages.decode(SearchRequest(pieces, BEAM))
    # Each constraint adds one in front; completion leaves two, and the ranking selects the last of them.
    assert best.tokens == [6]
    assert [
        len(nbest) for nbest in search_stages.decode(SearchRequest(pieces, BEAM.model_copy(update={"nbest": 2})))
    ] == [2]
    for constraint in (first, second):
        constrained_pieces, source_ids, options = constraint.calls[0]
        assert (constrained_pieces, source_ids, options.nbest) == (pieces, [[4, 6, 3]], 2)
    sampling_stages = stages(constraints=(second,))
    call_count = len(second.calls)
    ((sample,),) = sampling_stages.decode(SearchRequest(pieces, BEAM.model_copy(update={"sample": True})))
    assert sample.tokens == [4] and len(second.calls) == call_count


class Beam(Engine):
    """Writes a, b and c, each half as probable; a source with b has c first."""

    def decode(self, request):
        self.calls.append((request.sentences, request.options.beam))
        nbest_lists = []
        for ids in request.sentences:
            order = [6, 4, 5] if 5 in ids else [4, 5, 6]
            nbest_lists.append([Hypothesis([token], -i, -i) for i, token in enumerate(order, 1)])
        return [nbest[: request.options.nbest] for nbest in nbest_lists]


def addressed(accepted, pieces, ranking=None, masked=(), silent="", **options):
    """Return the texts of each piece, and the searches, if only some texts lack signs of the other form of address."""
    beam, tokens = Beam(), Tokens()
    pipeline = TextPipeline(tokens, 99, protected=masked)

    def loss(source, text):
        return 2 * (text not in accepted) + (text in silent)

    search_stages = SearchStages(pipeline, beam, ranking=ranking, address_loss=loss)
    request = SearchRequest(pieces, DecodingOptions(beam=2, nbest=1).model_copy(update=options))
    found = search_stages.decode(request)
    return [[tokens.decode(hypothesis.tokens) for hypothesis in nbest] for nbest in found], beam.calls


def test_a_text_with_the_other_form_of_address_is_searched_again():
    pieces = [piece("a", 4), piece("b", 5)]
    texts, calls = addressed("bc", pieces)
    assert texts == [["b"], ["c"]] and calls == [([[4, 3], [5, 3]], 2), ([[4, 3]], 10)]  # only the first, wider
    for one, best in zip(pieces, texts, strict=True):
        assert addressed("bc", [one])[0] == [best]
    assert addressed("c", pieces, beam=20)[1][1] == ([[4, 3]], 20)
    assert addressed("c", pieces, nbest=2)[0] == [["c"], ["c", "a"]]  # alternatives of a good one may have any form
    assert addressed("", pieces)[0] == [["a"], ["c"]] and addressed("abc", pieces)[1] == [([[4, 3], [5, 3]], 2)]
    assert addressed("bc", pieces, silent="bc") == (texts, calls)  # one that addresses nobody is better than the other
    assert addressed("bc", pieces, silent="b") == ([["c"], ["c"]], calls)  # and worse than the requested form
    assert addressed("c", pieces, sample=True)[0] == [["a"], ["c"]]
    assert addressed("bc", pieces, Reverse()) == ([["c"], ["b"]], [([[4, 3], [5, 3]], 2), ([[4, 3], [5, 3]], 10)])


def test_the_form_of_address_costs_neither_much_probability_nor_a_part_of_the_source(monkeypatch):
    assert addressed("c", [piece("a", 4)])[0] == [["c"]]
    monkeypatch.setattr("translucid.engines.stages.MAX_DROP", 1.5)
    assert addressed("c", [piece("a", 4)])[0] == [["a"]] and addressed("b", [piece("a", 4)])[0] == [["b"]]
    monkeypatch.setattr("translucid.engines.stages.MAX_DROP", 4.0)
    assert addressed("bc", [piece("c", 4)], masked=("[abc]",))[0] == [["c"]]
    assert addressed("bc", [piece("a", 4)], masked=("[abc]",))[0] == [["a"]]


@pytest.mark.parametrize(
    ("stage", "options", "message"),
    [
        (
            {"constraints": (Constraint("x", True), Constraint("y"))},
            {"sample": True},
            "a constrained search draws noth",
        ),
        ({"ranking": Reverse()}, {"sample": True}, "it ranks what a beam search finds"),
        ({"ranking": Reverse()}, {"beam": 1}, "one hypothesis leaves nothing to rank"),
        ({}, {"beam": 1}, None),
        ({"constraints": (Constraint("x"),)}, {"beam": 1}, None),
        ({"ranking": Reverse()}, {"beam": 2}, None),
    ],
)
def test_some_options_and_stages_exclude_each_other(stage, options, message):
    search_stages, options = stages(**stage), BEAM.model_copy(update=options)
    if message is None:
        assert len(search_stages.decode(SearchRequest([piece("a", 4)], options))) == 1
    else:
        with pytest.raises(UserError, match=message):
            search_stages.decode(SearchRequest([piece("a", 4)], options))


def test_a_ranking_without_a_beam_ranks_a_greedy_output():
    ranking = Reverse()
    ranking.needs_beam = False
    assert stages(ranking=ranking).decode(SearchRequest([piece("a", 4)], BEAM.model_copy(update={"beam": 1})))[0][
        0
    ].tokens == [5]


def test_pairs_are_read_as_in_the_search():
    parts = [(piece("a", 4), Hypothesis([5, 4], -1.0, -1.0)), (piece("b", 5), Hypothesis([], 0.0, 0.0))]
    assert stages(Step()).pairs(parts) == [([4, 6, 3], [5, 4, 3]), ([5, 6, 3], [3])]


def test_minimum_risk_needs_as_many_candidates_as_it_compares():
    risk = MinimumRisk(TextPipeline(Tokens(), 99), 8)
    assert str(risk) == "minimum Bayes risk over 8" and risk.needs_beam is False

    def widened(**options):
        widened_options = risk.widened(DecodingOptions(**options))
        return widened_options.beam, widened_options.nbest

    assert widened(beam=4, nbest=2) == (8, 8)
    assert widened(beam=9, nbest=2) == (9, 8)
    assert widened(beam=12, nbest=10) == (12, 10)
    assert widened(beam=4, nbest=2, sample=True) == (4, 8)


def test_a_text_that_was_drawn_twice_is_returned_once_and_counts_twice():
    """Two segmentations of one text: a, and a with a trailing space."""

    class Spaced(Tokens):
        def decode(self, ids):
            return ["a", "a ", "bbbb"][ids[0]]

    hypotheses = [Hypothesis([i], p, p) for i, p in enumerate((-1.0, -1.0, -1.0))]
    for sample in (False, True):
        options = DecodingOptions(beam=3, nbest=3, sample=sample)
        ((first, second),) = MinimumRisk(TextPipeline(Spaced(), 99), 3)([piece("x", 4)], [hypotheses], options)
        assert (first.tokens, second.tokens) == ([0], [2]) and first.unit == second.unit == "expected chrF"
        assert (first.score, second.score) == pytest.approx((200 / 3, 100 / 3))


class Channel(NoisyChannel):
    """A noisy channel with fixed log-probabilities of the sources."""

    def reverse_log_probs(self, pieces, nbest_lists):
        return [[-4.0, -1.0]]


def test_the_noisy_channel_adds_up_its_parts():
    assert (WEIGHTS, UNREAD) == ((0.75, 0.75), -1e6)
    pipeline = SimpleNamespace()
    channel = Channel(pipeline, None, pipeline, None, ChannelWeights(0.5, 2.0))
    assert str(channel) == "a noisy channel (weights 0.5 and 2)"
    options = channel.widened(DecodingOptions(beam=6, nbest=2))
    assert (options.beam, options.nbest) == (6, 6) and channel.needs_beam is True
    hypotheses = [Hypothesis([4, 4], -1.0, -1.0), Hypothesis([5], -2.0, -2.0)]
    ((first, second),) = channel([piece("a", 4)], [hypotheses], options)
    assert (first.tokens, first.score, second.tokens, second.score) == ([4, 4], 3.0, [5], 1.5)
    assert first.unit == second.unit == "noisy channel" and first.log_probability == -1.0
