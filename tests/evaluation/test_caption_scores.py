"""The figures of papers of image captioning, against the program that those use."""

import random

import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider

from translucid.corpora.scenes import generate
from translucid.evaluation.caption_scores import caption_scores, cider_d, papers_tokens
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.errors import UserError

FOUND = ["A black dog runs on the grass .", "two children play", "A man rides a bike."]
WANTED = [
    ["A black dog is running on grass .", "The dog runs across the grass."],
    ["Two children are playing in the sand.", "Kids play on a beach", "two children play football"],
    ["A man is riding a red bicycle down the road."],
]


def theirs(scorer, found, wanted):
    """Score words with spaces between them by pycocoevalcap, whose interface is of dictionaries by image."""
    hypotheses = {i: [" ".join(words)] for i, words in enumerate(found)}
    references = {i: [" ".join(words) for words in of_image] for i, of_image in enumerate(wanted)}
    return scorer(references, hypotheses)


def blurred(rng):
    """Captions of scenes, with words lost, doubled and exchanged, and one to five references each."""
    scenes = list(generate(60, seed=rng.randrange(1000)))
    found, wanted = [], []
    for scene in scenes:
        words = [word for word in rng.choice(scene.captions).words if rng.random() < 0.9]
        words += rng.choices(words, k=rng.randrange(4))
        words[0] = rng.choice(["the", "a", "two"])
        found.append(words if rng.random() < 0.95 else [])
        wanted.append([list(caption.words) for caption in scene.captions[: rng.randint(1, 5)]])
    return found, wanted


@pytest.mark.parametrize("seed", range(8))
def test_bleu_and_cider_are_those_of_the_papers(seed):
    found, wanted = blurred(random.Random(seed))
    ours = caption_scores([" ".join(words) for words in found], [[" ".join(one) for one in of] for of in wanted])
    bleu, _ = theirs(lambda *both: Bleu(4).compute_score(*both, verbose=0), found, wanted)
    mean, each = theirs(Cider().compute_score, found, wanted)
    assert list(ours.bleu) == pytest.approx([100 * value for value in bleu], rel=1e-6)
    assert ours.cider == pytest.approx(mean, rel=1e-6)
    assert cider_d(found, wanted) == pytest.approx(list(each), rel=1e-6, abs=1e-12)
    assert ours.bleu[0] > ours.bleu[3] > 5 and 1 < ours.cider < 10


def test_where_nothing_is_found_the_figures_are_nothing():
    found, wanted = [["cat"], ["x", "y"]], [[["dog"]], [["two", "dogs"], ["a", "b", "c"]]]
    ours = caption_scores(["cat", "x y"], [["dog"], ["two dogs", "a b c"]])
    bleu, _ = theirs(lambda *both: Bleu(4).compute_score(*both, verbose=0), found, wanted)
    assert ours.bleu == (0, 0, 0, 0) and list(bleu) == pytest.approx([0] * 4, abs=1e-3)
    assert ours.cider == 0
    assert caption_scores([""], [["a dog"]]).bleu == (0, 0, 0, 0)
    some = caption_scores(["a b c x d"], [["a b c y d"]]).bleu
    assert some[:3] == pytest.approx([80, 100 * (4 / 5 * 2 / 4) ** (1 / 2), 100 * (4 / 5 * 2 / 4 * 1 / 3) ** (1 / 3)])
    assert some[3] == 0  # sacreBLEU would make it up to something


def test_captions_that_are_too_short_for_four_words_still_have_shorter_figures():
    found, wanted = [["two", "dogs"], ["a", "cat"]], [[["two", "dogs"]], [["a", "cat"]]]
    assert caption_scores(["two dogs", "a cat"], [["two dogs"], ["a cat"]]).bleu == (
        pytest.approx(100),
        pytest.approx(100),
        0,
        0,
    )
    mean, _ = theirs(Cider().compute_score, found, wanted)
    assert caption_scores(["two dogs", "a cat"], [["two dogs"], ["a cat"]]).cider == pytest.approx(mean) == 5


def test_an_image_with_fewer_references_has_no_empty_one():
    """One of no words would be the closest to a short caption, and it would not be called too short."""
    short = caption_scores(["dog", "a cat on a mat"], [["the dog runs"], ["a cat on a mat", "a cat"]])
    assert short.bleu[0] == pytest.approx(100 * 2.718281828 ** (1 - 8 / 6), rel=1e-6)


def test_cider_by_pencil():
    """Two images, `dog` in the references of one: rare there, log 2; `a`, in both, weighs nothing."""
    assert cider_d([["a", "dog"], ["a"]], [[["a", "dog"]], [["a", "cat"]]]) == pytest.approx([10 * 2 / 4, 0])
    twice = cider_d([["dog", "dog"], []], [[["dog"]], [["cat"]]])[0]  # once counts, and the caption is a word too long
    assert twice == pytest.approx(10 / 4 * 1 / 2 * 2.718281828 ** (-1 / 72))
    assert cider_d([["dog"]], [[["dog"]]]) == [0]
    longer = cider_d([["dog", "a", "a", "a"], []], [[["dog"]], [["a"]]])[0]
    assert longer < cider_d([["dog", "a", "a", "a"], []], [[["dog"]], [["a"]]], sigma=100)[0]


def test_the_figure_of_sacrebleu_is_its_own_with_its_signature():
    ours = caption_scores(FOUND, WANTED).sacrebleu
    sets = [[WANTED[i][0] for i in range(3)]]
    assert ours.signature.startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp")
    one = caption_scores(FOUND, [of_image[:1] for of_image in WANTED]).sacrebleu
    assert one == corpus_scores(FOUND, sets)[0]
    assert ours.value > one.value


def test_the_figures_by_name():
    scores = caption_scores(FOUND, WANTED)
    told = scores.to_json()
    assert [told[f"bleu_{n}"] for n in (1, 2, 3, 4)] == list(scores.bleu) and told["cider_d"] == scores.cider
    assert told["sacrebleu"] == {"value": scores.sacrebleu.value, "signature": scores.sacrebleu.signature}


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


def test_punctuation_and_capitals_make_no_difference_to_the_papers_figures():
    plain = [[" ".join(papers_tokens(text)) for text in of_image] for of_image in WANTED]
    one, other = caption_scores(FOUND, WANTED), caption_scores([text.upper() + " !" for text in FOUND], plain)
    assert (one.bleu, one.cider) == (other.bleu, other.cider)
    assert one.sacrebleu != other.sacrebleu


@pytest.mark.parametrize(
    ("hypotheses", "references", "said"),
    [
        ([], [], "no captions"),
        (["a", "b"], [["a"]], "2 captions and references of 1 images"),
        (["a", "b"], [["a"], []], "2 captions and references of 1 images"),
        (["a"], [["a"], ["b"]], "1 captions and references of 2 images"),
    ],
)
def test_what_can_not_be_scored_is_said(hypotheses, references, said):
    with pytest.raises(UserError, match=said):
        caption_scores(hypotheses, references)
