"""Policies against an independent implementation: every prefix is decoded anew, and NumPy reads the recorded maps."""

import numpy as np
import pytest
import torch

from bitext.words import text_of, words_of
from tests.probes.untrained import untrained_translator
from translucid.corpora.phrasebook import generate
from translucid.decoding.maps import forced_pass
from translucid.live.policies import POLICIES, AlignAtt, EDAtt, LocalAgreement, Proposal, WaitK
from translucid.live.sentence import ends_sentence, words_of_pieces


def proposal(row, words, heard, word=0, hypothesis=(), earlier=()):
    return Proposal(np.array(row, np.float32), words, heard, word, hypothesis, earlier)


def test_the_rules_on_numbers_by_hand():
    """Four words in six pieces; the last two words are the pieces 3 to 5."""
    words = [0, 0, 1, 2, 3, 3]
    assert AlignAtt(2).writes(proposal([0.1, 0.1, 0.4, 0.2, 0.1, 0.1], words, 4))
    assert not AlignAtt(2).writes(proposal([0.1, 0.1, 0.2, 0.4, 0.1, 0.1], words, 4))
    assert AlignAtt(1).writes(proposal([0.1, 0.1, 0.2, 0.4, 0.1, 0.1], words, 4))
    assert AlignAtt(0).writes(proposal([0, 0, 0, 0, 0, 1], words, 4))
    assert not AlignAtt(4).writes(proposal([1, 0, 0, 0, 0, 0], words, 4))
    half = [0.125, 0.125, 0.25, 0.25, 0.125, 0.125]
    assert EDAtt(2, 0.51).writes(proposal(half, words, 4))
    assert not EDAtt(2, 0.5).writes(proposal(half, words, 4))
    assert EDAtt(2, 0.5).evidence(proposal(half, words, 4)) == {"mass": 0.5, "frontier": 3, "alpha": 0.5}
    assert [WaitK(3).writes(proposal([], [], heard, word)) for heard, word in [(2, 0), (3, 0), (3, 1), (4, 1)]] == [
        False,
        True,
        False,
        True,
    ]
    two = LocalAgreement(2)
    assert two.writes(proposal([], [], 3, 0, [7, 8], [[7, 8, 9], [7, 8]]))
    assert not two.writes(proposal([], [], 3, 0, [7, 8], [[7, 8, 9], [7]]))
    assert not two.writes(proposal([], [], 3, 0, [7], [[7]]))
    assert LocalAgreement(0).writes(proposal([], [], 1, 0, [7], []))


def passes(policy, lag, row, words, heard, word, hypothesis, earlier):
    """The rules again, in float64."""
    row = np.asarray(row, np.float64)
    last = sum(number >= heard - lag for number in words)  # f, lambda
    match policy:
        case "alignatt":
            return row.argmax() < len(row) - last
        case "edatt":
            return row[len(row) - last :].sum() < 0.3
        case "wait-k":
            return word + 1 <= heard - lag + 1
        case "agreement":
            agree = [list(other[: len(hypothesis)]) == hypothesis for other in earlier[-lag:]]
            return len(agree) == lag and all(agree)
        case "whole":
            return False


def oracle(translator, words, policy, lag):
    """Return the target ids and delays of a sentence; each step recomputes everything from the start token on."""
    model, tokenizer, decoding = translator.model, translator.tokenizer, translator.configuration.decoding
    vocabulary = tokenizer.target_vocabulary
    begins = [piece.startswith("▁") for piece in vocabulary]
    committed, texts, earlier = [], [], []
    for heard, is_end in [*((n, False) for n in range(1, len(words) + 1)), (len(words), True)]:
        (source,) = tokenizer.encode_source([" ".join(words[:heard])])
        numbers = np.cumsum([piece.startswith("▁") for piece in tokenizer.source_pieces(source)]) - 1
        source_ids = torch.tensor([[*source, model.eos]])
        limit = int(len(source) * decoding.max_length_ratio) + decoding.max_length_extra
        tokens = [*committed]
        with torch.inference_mode():
            while tokens[-1:] != [model.eos]:
                logits = model(source_ids, torch.tensor([[model.bos, *tokens]]))[0, -1].double().numpy().copy()
                logits[[model.pad, model.bos, model.special.unknown]] = -np.inf
                if decoding.no_repeat_ngram == 1:
                    logits[tokens] = -np.inf
                if not tokens:
                    logits[model.eos] = -np.inf
                if committed and len(tokens) == len(committed):
                    for number, piece in enumerate(vocabulary[4:], 4):
                        if piece[0].isalnum():
                            logits[number] = -np.inf
                tokens.append(int(logits.argmax()) if len(tokens) < limit else model.eos)
            maps = forced_pass(model, source_ids, torch.tensor([tokens])).maps
        cross = [weights[0].double().mean(0).numpy() for name, weights in maps.items() if name.endswith(".cross")]
        rows = np.mean(cross, 0)[:, :-1]
        end, done = len(committed), len(committed)  # pieces that pass, and whole words among them
        while tokens[end] != model.eos:
            if begins[tokens[end]]:
                done = end
            word = sum(begins[token] for token in tokens[1 : end + 1])  # the first piece always begins one
            if not is_end and not passes(policy, lag, rows[end], numbers, heard, word, tokens[: end + 1], earlier):
                break
            end += 1
        earlier.append(tokens[:-1])
        committed = tokens[: end if is_end else done]
        texts.append((heard, tokenizer.decode(committed).split()))
    final = texts[-1][1]
    delays = []
    for count in range(1, len(final) + 1):
        delays.append(next(heard for heard, written in texts if written[:count] == final[:count]))
    return committed, delays


def assert_agreement(translator, sentences, lags, policies=POLICIES):
    """Compare sessions with the oracle, and the decisions with the recorded rows."""
    for sentence in sentences:
        for policy in policies:
            for lag in lags:
                session = translator.live(policy, lag=lag, alpha=0.3, split=False)
                session.read(sentence)
                session.finish()
                expected = oracle(translator, sentence.split(), policy, lag)
                assert (session.sentences[0].tokens, session.delays) == expected, (sentence, policy, lag)
                if policy in ("alignatt", "edatt"):
                    assert_reproduced(session.record, policy, lag)


def assert_reproduced(record, policy, lag):
    """The stored rows reproduce each decision before the end of the sentence."""
    (sentence,) = record["sentences"]
    decided = [(part["heard"], piece["row"], True) for part in sentence["written"] for piece in part["pieces"]]
    decided += [(part["heard"], part["piece"]["row"], False) for part in sentence["refused"] if part["evidence"]]
    for heard, row, written in decided:
        words = sentence["heard"][str(heard)]["words"]
        if heard < len(sentence["source"]):
            assert passes(policy, lag, row, words, heard, 0, [], []) == written


def test_an_implementation_that_recomputes_everything_agrees(tmp_path):
    translator = untrained_translator(tmp_path)
    sentences = [pair.source for pair in generate(2, split="test", max_words=6)]
    assert_agreement(translator, sentences[:1], (1,))
    with torch.no_grad():
        translator.model.output.bias[translator.model.eos] += 2  # the model often proposes to end the sentence
    assert_agreement(translator, sentences[1:], (1,))


def test_words_of_pieces_and_of_texts():
    text = "Ab  c\t我爱 x。"
    words = words_of(text)
    assert [word.text for word in words] == ["Ab", "c", "我", "爱", "x", "。"]
    assert text_of(words) == "Ab c 我爱 x。"
    assert words_of_pieces(["▁A", "b", "▁", "c", "▁我爱", "▁x", "。"]) == [0, 0, 0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "language", "ends"),
    [
        ("He met Mr.", "en", False),
        ("It costs 3.5", "en", False),
        ("It costs 3.", "en", True),
        ('He said "Go."', "en", True),
        ("U.S.", "en", False),
        ("我爱你。", "zh", True),
        ("我爱你，", "zh", False),
        ("El Sr.", "es", False),
        ("¿Qué?", "es", True),
        ("no end", None, False),
    ],
)
def test_sentence_ends(text, language, ends):
    assert ends_sentence(text, language) is ends
