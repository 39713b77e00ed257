"""Scores used in image captioning papers, against the reference implementation."""

import random

import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider

from translucid.captions.caption_scores import caption_scores, cider_d, papers_tokens
from translucid.captions.scenes import generate
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.errors import UserError

HYPOTHESES = ["A black dog runs on the grass .", "two children play", "A man rides a bike."]
REFERENCES = [
    ["A black dog is running on grass .", "The dog runs across the grass."],
    ["Two children are playing in the sand.", "Kids play on a beach", "two children play football"],
    ["A man is riding a red bicycle down the road."],
]


def reference_scores(scorer, captions, captions_by_image):
    """Score tokenized captions by pycocoevalcap, which takes dictionaries by image."""
    hypotheses = {i: [" ".join(words)] for i, words in enumerate(captions)}
    references = {i: list(map(" ".join, captions)) for i, captions in enumerate(captions_by_image)}
    return scorer(references, hypotheses)


def noisy_captions(rng):
    """Return captions of scenes with words removed, repeated and replaced, and one to five references each."""
    scenes = list(generate(60, seed=rng.randrange(1000)))
    hypotheses, references = [], []
    for scene in scenes:
        words = [word for word in rng.choice(scene.captions).words if rng.random() < 0.9]
        words += rng.choices(words, k=rng.randrange(4))
        words[0] = rng.choice(["the", "a", "two"])
        hypotheses.append(words if rng.random() < 0.95 else [])
        references.append([list(caption.words) for caption in scene.captions[: rng.randint(1, 5)]])
    return hypotheses, references


@pytest.mark.parametrize("seed", range(8))
def test_bleu_and_cider_are_those_of_the_papers(seed):
    hypotheses, references = noisy_captions(random.Random(seed))
    result = caption_scores(
        list(map(" ".join, hypotheses)),
        [list(map(" ".join, captions)) for captions in references],
    )
    bleu, _ = reference_scores(lambda *arguments: Bleu(4).compute_score(*arguments, verbose=0), hypotheses, references)
    mean, by_image = reference_scores(Cider().compute_score, hypotheses, references)
    assert list(result.bleu) == pytest.approx([100 * value for value in bleu], rel=1e-6)
    assert result.cider == pytest.approx(mean, rel=1e-6)
    assert cider_d(hypotheses, references) == pytest.approx(list(by_image), rel=1e-6, abs=1e-12)
    assert result.bleu[0] > result.bleu[3] > 5 and 1 < result.cider < 10


def test_captions_without_matches_score_zero():
    hypotheses, references = [["cat"], ["x", "y"]], [[["dog"]], [["two", "dogs"], ["a", "b", "c"]]]
    result = caption_scores(["cat", "x y"], [["dog"], ["two dogs", "a b c"]])
    bleu, _ = reference_scores(lambda *arguments: Bleu(4).compute_score(*arguments, verbose=0), hypotheses, references)
    assert result.bleu == (0, 0, 0, 0) and list(bleu) == pytest.approx([0] * 4, abs=1e-3)
    assert result.cider == 0
    assert caption_scores([""], [["a dog"]]).bleu == (0, 0, 0, 0)
    partial = caption_scores(["a b c x d"], [["a b c y d"]]).bleu
    assert partial[:3] == pytest.approx(
        [80, 100 * (4 / 5 * 2 / 4) ** (1 / 2), 100 * (4 / 5 * 2 / 4 * 1 / 3) ** (1 / 3)]
    )
    assert partial[3] == 0  # sacreBLEU would smooth it


def test_captions_that_are_too_short_for_four_words_still_have_shorter_figures():
    hypotheses, references = [["two", "dogs"], ["a", "cat"]], [[["two", "dogs"]], [["a", "cat"]]]
    assert caption_scores(["two dogs", "a cat"], [["two dogs"], ["a cat"]]).bleu == (
        pytest.approx(100),
        pytest.approx(100),
        0,
        0,
    )
    mean, _ = reference_scores(Cider().compute_score, hypotheses, references)
    assert caption_scores(["two dogs", "a cat"], [["two dogs"], ["a cat"]]).cider == pytest.approx(mean) == 5


def test_an_image_with_fewer_references_has_no_empty_one():
    """The length of an empty reference would be closest to a short caption and hide the brevity penalty."""
    short = caption_scores(["dog", "a cat on a mat"], [["the dog runs"], ["a cat on a mat", "a cat"]])
    assert short.bleu[0] == pytest.approx(100 * 2.718281828 ** (1 - 8 / 6), rel=1e-6)


def test_cider_by_hand():
    """Of two images, one has `dog` in its references (weight log 2); `a`, in both, has no weight."""
    assert cider_d([["a", "dog"], ["a"]], [[["a", "dog"]], [["a", "cat"]]]) == pytest.approx([10 * 2 / 4, 0])
    repeated = cider_d([["dog", "dog"], []], [[["dog"]], [["cat"]]])[
        0
    ]  # one counts, and the caption is one word too long
    assert repeated == pytest.approx(10 / 4 * 1 / 2 * 2.718281828 ** (-1 / 72))
    assert cider_d([["dog"]], [[["dog"]]]) == [0]
    longer = cider_d([["dog", "a", "a", "a"], []], [[["dog"]], [["a"]]])[0]
    assert longer < cider_d([["dog", "a", "a", "a"], []], [[["dog"]], [["a"]]], sigma=100)[0]


def test_the_figure_of_sacrebleu_is_its_own_with_its_signature():
    result = caption_scores(HYPOTHESES, REFERENCES).sacrebleu
    sets = [[REFERENCES[i][0] for i in range(3)]]
    assert result.signature.startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp")
    single = caption_scores(HYPOTHESES, [captions[:1] for captions in REFERENCES]).sacrebleu
    assert single == corpus_scores(HYPOTHESES, sets)[0]
    assert result.value > single.value


def test_the_figures_by_name():
    scores = caption_scores(HYPOTHESES, REFERENCES)
    record = scores.to_json()
    assert [record[f"bleu_{n}"] for n in (1, 2, 3, 4)] == list(scores.bleu) and record["cider_d"] == scores.cider
    assert record["sacrebleu"] == {"value": scores.sacrebleu.value, "signature": scores.sacrebleu.signature}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A black dog, running .", "a black dog running"),
        ("Dogs -- two of them -- run; a cat doesn't!", "dogs two of them run a cat does n't"),
        ("the boys' ball and the boy's t-shirt.", "the boys ball and the boy 's t-shirt"),
        ("the boy ’s “ball”…", "the boy 's ball"),
        ("he said ``hello'' (twice)", "he said hello twice"),
        ("at 10:30, 1,000 people: one , two", "at 10:30 1,000 people one two"),
        ("one,two:three 1,a b,2 wait...what dogs--two ‘cats’", "one two three 1 a b 2 wait what dogs two cats"),
        ("at the McDonald's.", "at the mcdonald 's"),
        ("We cannot see it", "we can not see it"),
        ("black & white", "black & white"),
        ("Ein Mann fährt Rad.", "ein mann fährt rad"),
        ("一只狗。", "一 只 狗"),
        (" . , ' -", ""),
    ],
)
def test_words_are_counted_as_the_papers_do(text, words):
    assert papers_tokens(text) == words.split()


def tokenized(text):
    return " ".join(papers_tokens(text))


def test_punctuation_and_capitals_make_no_difference_to_the_papers_figures():
    references = [list(map(tokenized, captions)) for captions in REFERENCES]
    original, changed = (
        caption_scores(HYPOTHESES, REFERENCES),
        caption_scores([text.upper() + " !" for text in HYPOTHESES], references),
    )
    assert (original.bleu, original.cider) == (changed.bleu, changed.cider)
    assert original.sacrebleu != changed.sacrebleu


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "no captions"),
        (["a", "b"], [["a"]], "2 captions and references of 1 images"),
        (["a", "b"], [["a"], []], "2 captions and references of 1 images"),
        (["a"], [["a"], ["b"]], "1 captions and references of 2 images"),
    ],
)
def test_inputs_that_can_not_be_scored_are_refused(hypotheses, references, message):
    with pytest.raises(UserError, match=message):
        caption_scores(hypotheses, references)
