"""Invalid decoding options are rejected with a reason."""

import pytest
from pydantic import ValidationError

from translucid.decoding.decoding_options import DecodingOptions, length_limit
from translucid.runs.keys import descriptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nbest": 6}, "nbest=6 asks for more outputs than beam=5 can find: set beam to 6 or more"),
        ({"max_loops": 1}, "max_loops=1 would forbid every word"),
        ({"temperature": 0.5}, "temperature=0.5 changes nothing without sample=true"),
        ({"top_k": 5}, "top_k=5 changes nothing without sample=true"),
        ({"top_p": 0.5}, "top_p=0.5 changes nothing without sample=true"),
        ({"sample": True, "temperature": 0}, "greater than 0"),
        ({"beam": 0}, "greater than or equal to 1"),
        ({"length_penalty": -1}, "greater than or equal to 0"),
        ({"length_penalty": float("nan")}, "finite"),
        ({"beem": 5}, "Extra inputs"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValidationError, match=message):
        DecodingOptions(**options)


BOUNDS = {
    "beam": (1, 1000),
    "length_penalty": (0, 5),
    "min_length": (0, 10_000),
    "max_length_ratio": (0, 1000),
    "max_length_extra": (1, 10_000),
    "no_repeat_ngram": (0, 100),
    "max_loops": (2, 1000),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_the_bounds_of_an_option_are_allowed_and_what_is_beyond_is_not(name):
    lowest, highest = BOUNDS[name]
    others = {"min_length": 0, "max_length_extra": 10_000}
    for value in (lowest, highest):
        assert getattr(DecodingOptions(**{**others, name: value}), name) == value
    for value in (lowest - 1, highest + 1):
        if (name, value) != ("max_loops", 1):
            with pytest.raises(ValidationError, match=r"greater than|less than"):
                DecodingOptions(**{**others, name: value})


def test_options_are_saved_and_loaded():
    options = DecodingOptions(sample=True, nbest=8, temperature=0.7)
    assert DecodingOptions(**options.model_dump()) == options
    assert DecodingOptions(**DecodingOptions().model_dump()) == DecodingOptions()


def test_every_option_is_explained():
    assert set(descriptions(DecodingOptions)) == set(DecodingOptions.model_fields)


def test_a_wide_beam_gets_a_lower_limit_of_length():
    source = [3, 1000]
    wide, narrow = (DecodingOptions(beam=beam, max_length_ratio=1000) for beam in (1000, 5))
    assert [length_limit(length, narrow, None) for length in source] == [3020, 209_715]
    assert [length_limit(length, wide, None) for length in source] == [1048, 1048]
    assert length_limit(source[1], wide.model_copy(update={"sample": True, "nbest": 5}), None) == 209_715
