"""Sessions: what is written never changes, and does not depend on the parts in which the text arrives."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.probes.untrained import untrained_translator
from translucid.ground.errors import UserError
from translucid.ground.joint_steps import Running, compute_steps
from translucid.live.policies import POLICIES

TEXT = "I like soccer and Mr. Smith sees 3.5 houses. The dog eats it!  We go"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return untrained_translator(tmp_path_factory.mktemp("run"))


def live(translator, parts, policy, **options):
    session = translator.live(policy, **options)
    written = [session.read(part) for part in parts]
    written.append(session.finish())
    assert "".join(written) == session.text
    return session


@pytest.fixture(scope="module")
def expected(translator):
    """By policy, the session of a text that arrives as a whole."""
    return {policy: live(translator, [TEXT], policy) for policy in POLICIES}


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, len(TEXT) - 1), max_size=30), st.sampled_from(POLICIES))
def test_parts_change_nothing(translator, expected, cuts, policy):
    edges = sorted({0, *cuts, len(TEXT)})
    parts = [TEXT[start:end] for start, end in itertools.pairwise(edges)]
    session = live(translator, parts, policy)
    assert session.text == expected[policy].text
    assert session.delays == expected[policy].delays
    assert session.record == expected[policy].record


@pytest.mark.parametrize("policy", POLICIES)
def test_sentences_end_by_the_words_read_so_far(expected, policy):
    sentences = [[word.text for word in sentence.words] for sentence in expected[policy].sentences]
    first = ["I", "like", "soccer", "and", "Mr.", "Smith", "sees", "3.5", "houses."]
    assert sentences == [first, ["The", "dog", "eats", "it!"], ["We", "go"]]


@pytest.mark.parametrize(("policy", "beam"), [*((policy, 1) for policy in POLICIES), ("alignatt", 3), ("agreement", 3)])
def test_a_lag_of_the_whole_sentence_is_the_ordinary_translation(translator, policy, beam):
    texts = ["I like soccer.", "WE SEE THE BIG HOUSE"]
    for text in texts:
        session = live(translator, [text], policy, lag=20, beam=beam)
        ordinary = translator.translate(text, beam=beam)
        assert session.text == ordinary.text
        ((_, hypothesis),) = ordinary.parts
        assert session.sentences[0].tokens == hypothesis.tokens


@pytest.mark.parametrize("policy", POLICIES)
def test_forgetting_sentences_changes_nothing(translator, expected, policy):
    session, delays, sentences = translator.live(policy), [], []
    for part in [*TEXT, None]:
        known = len(session.delays)
        session.read(part) if part else session.finish()
        delays += session.delays[known:]
        sentences += [sentence for sentence in session.record["sentences"] if sentence["ended"]]
        session.forget()
        assert len(session.sentences) <= 1
    assert session.text == expected[policy].text and session.heard == expected[policy].heard
    assert delays == expected[policy].delays and sentences == expected[policy].record["sentences"]


async def translated(session, text):
    """Read a text character by character."""
    for character in text:
        await session.reading(character)
    await session.finishing()


def translate_together(sessions, text, draw):
    """Let sessions read a text, of which some begin and some go on at a time."""
    waiting, later = [], list(sessions)
    while waiting or later:
        while later and draw.random() < 0.5:
            waiting.append(Running(translated(later.pop(), text)))
            waiting[-1].go_on()
        draw.shuffle(waiting)
        compute_steps(waiting[: draw.randint(0, len(waiting))])
        for running in waiting:
            if not running.step:
                running.future.result()
        waiting = [running for running in waiting if running.step]


def same(record, other):
    """Whether two records have the same values, apart from the last digits of numbers."""
    if isinstance(record, dict):
        return record.keys() == other.keys() and all(same(record[name], other[name]) for name in record)
    if isinstance(record, list):
        return len(record) == len(other) and all(map(same, record, other))
    return record == (pytest.approx(other, abs=1e-5) if isinstance(record, float) else other)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.lists(st.sampled_from(POLICIES), min_size=2, max_size=6))
def test_sessions_write_together_what_they_write_alone(translator, expected, seed, policies):
    sessions = [translator.live(policy) for policy in policies]
    translate_together(sessions, TEXT, random.Random(seed))
    for session, policy in zip(sessions, policies, strict=True):
        assert session.text == expected[policy].text and session.delays == expected[policy].delays
        assert same(session.record, expected[policy].record)


def test_wrong_options_are_refused(translator):
    with pytest.raises(UserError, match="policy"):
        translator.live("wait")
    with pytest.raises(UserError, match="lag"):
        translator.live(lag=-1)
    for name in ("decoder.7.cross", "encoder.0.self", "decoder.0.cross.head.2"):
        with pytest.raises(UserError, match="has no attention"):
            translator.live(attention=name)
