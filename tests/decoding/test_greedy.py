"""Greedy search against a step-by-step computation."""

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import search

EOS = 3


def test_each_token_is_the_likeliest_after_those_before(table_model, source_batch, sentences):
    model = table_model(5)
    results = search(model, source_batch(sentences), DecodingOptions(beam=1, max_length_extra=3))
    for sentence, (hypothesis,) in zip(sentences, results, strict=True):
        tokens: list[int] = []
        while tokens[-1:] != [EOS]:
            step = model.log_probs(sentence, tokens)
            allowed = [4, 5, 6] + [EOS] * bool(tokens)
            at_limit = len(tokens) == 2 * (len(sentence) - 1) + 3
            tokens.append(EOS if at_limit else max(allowed, key=lambda token: step[token]))
        assert hypothesis.tokens == tokens[:-1]


def test_finished_sentences_leave_the_batch(table_model, source_batch, sentences):
    model = table_model(5, eos=1.0)
    results = search(model, source_batch(sentences), DecodingOptions(beam=1))
    lengths = [len(h[0].tokens) + 1 for h in results]
    assert len(set(lengths)) > 1
    assert len(model.rows_seen) == max(lengths)
    for step, rows in enumerate(model.rows_seen):
        assert rows == sum(length > step for length in lengths)


def test_of_equal_tokens_the_lowest_is_taken(table_model, source_batch):
    model = table_model()
    model.logits[:] = 0.0
    (hypotheses,) = search(model, source_batch([[4, EOS]]), DecodingOptions(beam=1, min_length=3))
    assert hypotheses[0].tokens == [4, 4, 4]
