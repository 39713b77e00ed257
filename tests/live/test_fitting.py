"""The attention and EDAtt's thresholds that a run keeps for live translation."""

import numpy as np
import pytest

from bitext.pair import Pair
from tests.probes.untrained import untrained_translator
from translucid import Translator
from translucid.api.evaluation.scoring import save_alignment_options
from translucid.corpora.phrasebook import generate
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.live.fitting import ForcedSentence, chosen_settings, threshold
from translucid.live.policies import AlignAtt, EDAtt, Proposal
from translucid.runs.configuration import LiveSettings, resumed, validated

PAIRS = [Pair(phrase.source, phrase.target) for phrase in generate(24, split="valid", max_words=6)]


def reading(layer, *, both=False, shift=False, method="weights"):
    return AlignmentOptions(learned=False, layer=layer, both=both, shift=shift, method=method)


def test_the_threshold_by_hand():
    """Two target words, the second of two pieces; three source words, whose last has the attention below.

    With a lag of 1, AlignAtt writes the first word after two words, as 0.4 is not the largest weight, and the second
    one at the end: mean 2.5. So does EDAtt if 0.4 < alpha <= 0.9; its second word waits for both pieces.
    """
    rows = {1: [[1.0], [1.0], [1.0]], 2: [[0.6, 0.4], [0.1, 0.9], [0.2, 0.8]]}
    rows[3] = [[0.6, 0.3, 0.1], [0.55, 0.0, 0.45], [0.2, 0.3, 0.5]]
    proposals = [[Proposal(np.float32(row), [*range(heard)], heard, 0) for row in rows[heard]] for heard in rows]
    sentence = ForcedSentence(proposals, [slice(0, 1), slice(1, 3)])
    assert sentence.delays(AlignAtt(1)) == [2, 3]
    assert [sentence.delays(EDAtt(1, alpha)) for alpha in (0.1, 0.3, 0.41)] == [[3, 3], [3, 3], [2, 3]]
    assert threshold([sentence], 1) == 0.41
    # With a lag of 3 words, both wait for the end, whatever the threshold is.
    assert threshold([sentence], 3) == 0.01


@pytest.fixture
def translator(tmp_path):
    return untrained_translator(tmp_path / "run")


def test_a_run_keeps_its_choice(translator):
    """The best reading that a policy can use decides, and all sessions of the run use it."""
    run = translator.run
    assert translator.live("edatt").alpha == 0.3
    ranked = dict.fromkeys([reading(0, both=True), reading(0, shift=True), AlignmentOptions(both=False), reading(1)])
    save_alignment_options(translator, ranked, PAIRS)
    loaded = Translator.load(run, engine="torch")
    chosen = loaded.configuration.live
    assert loaded.configuration.alignment == reading(0, both=True)
    assert chosen.attention == "decoder.1.cross" and 1 <= len(chosen.alpha) <= 6
    session = loaded.live("edatt", lag=1)
    assert session.record["attention"] == "decoder.1.cross" and session.record["alpha"] == chosen.alpha[0]
    session.read("I like soccer")
    (refused,) = session.sentences[0].refused[:1]
    assert refused.evidence["alpha"] == chosen.alpha[0]
    assert [loaded.live("edatt", lag=lag).alpha for lag in (0, 2, 50)] == [chosen.alpha[i] for i in (0, 1, -1)]
    # What a caller says goes first; thresholds are those of the attention for which they were chosen.
    assert loaded.live("edatt", alpha=0.7).alpha == 0.7
    assert loaded.live("edatt", attention="decoder.0.cross").alpha == 0.3
    assert loaded.live("edatt", attention="decoder.1.cross").alpha == chosen.alpha[1]
    # A record's attention can be given again.
    both = "decoder.0.cross, decoder.1.cross"
    assert loaded.live(attention=both).record["attention"] == translator.live().record["attention"] == both
    for name in (f"{both}.head.1", "alignment layer", "decoder.0.cross, encoder.0.self"):
        with pytest.raises(UserError, match=r"head|attention"):
            loaded.live(attention=name)
    # A resumed training keeps it, and a run from before has none.
    assert resumed(loaded.configuration, ["training.max_steps=9"], {}).live == chosen
    earlier = loaded.configuration.model_dump()
    del earlier["live"]
    assert validated(earlier).live == LiveSettings()


def test_the_choice_depends_on_the_pairs(translator):
    ranked = dict.fromkeys([reading(1)])
    chosen = [chosen_settings(translator, ranked, pairs).alpha for pairs in (PAIRS[:12], PAIRS[12:])]
    assert chosen[0] != chosen[1] and all(0 < alpha < 1 for alphas in chosen for alpha in alphas)
    # Too few pairs, or none that the model reads in one piece.
    assert chosen_settings(translator, ranked, PAIRS[:3]) == LiveSettings(attention="decoder.1.cross")
    assert chosen_settings(translator, ranked, [Pair("a " * 400, "b"), Pair("", "b"), Pair("b", "")]).alpha == []
    # Norms and shifted rows tell nothing about a piece that is proposed; their layer is read as it is.
    assert chosen_settings(translator, dict.fromkeys([reading(0, method="norms")]), []).attention == "decoder.0.cross"
