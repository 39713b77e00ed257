"""`Generator`: continuations of a prompt, scores of texts, and the most likely pieces at each step."""

import math

import pytest
import torch

from translucid import Generator, UserError
from translucid.corpora.phrasebook import generate
from translucid.data.batching import Batch
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import forced_log_probs
from translucid.ground.console import Console
from translucid.language.generator import generation_options
from translucid.language.running_text import StreamLoss
from translucid.language.scores import empty_source
from translucid.runs.configuration import resolve
from translucid.training.experiment import run_experiment

SETTINGS = [
    *("model.width=16", "model.hidden=20", "data.tokenizer.vocabulary=200", "training.batch_tokens=600"),
    *("training.max_epochs=null", "training.max_steps=100", "training.validate_every=100", "training.warmup=10"),
    *("training.averaging=0.5", "training.learning_rate=0.02", "decoding.max_length_extra=12"),
]


@pytest.fixture(scope="module", params=[False, True], ids=["forwards", "backwards"])
def generator(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    lines = [p.target for p in generate(400, max_words=8)]
    (folder / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    files = {"data.train": [str(folder / "train.txt")], "model.backwards": request.param}
    configuration = resolve(preset="lm-lstm", assignments=SETTINGS, overrides=files)
    run_experiment(configuration, folder / "run", device="cpu", console=Console(quiet=True))
    return Generator.load(folder / "run", "cpu")


def ids_of(generator, text):
    ids = generator.tokenizer.encode_target([text])[0]
    return ids[::-1] if generator.backwards else ids


@pytest.mark.parametrize(
    "options", [{"seed": 3}, {"beam": 1}, {"beam": 3, "nbest": 3}, {"nbest": 3, "temperature": 2.0}]
)
def test_a_text_goes_on_from_its_prompt_with_the_probabilities_that_the_model_gives(generator, options):
    generated = generator.generate("me gusta", **options)
    assert 1 <= len(generated.nbest) <= options.get("nbest", 1)
    prefix = ids_of(generator, "me gusta")
    for continuation in generated.nbest:
        assert (
            continuation.text.endswith("me gusta") if generator.backwards else continuation.text.startswith("me gusta")
        )
        ids = continuation.hypothesis.tokens
        assert ids[: len(prefix)] == prefix
        assert continuation.text == generator.tokenizer.decode(ids[::-1] if generator.backwards else ids)
        targets = torch.tensor([[*ids, 3]])
        log_probs = forced_log_probs(generator.model, generator.model.encode(empty_source(1)), targets)[0]
        expected = log_probs[len(prefix) :][: len(continuation.written)].tolist()
        assert [piece.log_probability for piece in continuation.written] == pytest.approx(expected, abs=1e-4)
        names = generator.tokenizer.target_pieces([*ids, 3][len(prefix) :])
        assert [piece.text for piece in continuation.written] == names[: len(continuation.written)]
        assert continuation.ended == (continuation.written[-1].text == "</s>")
        assert len(continuation.written) == 12 if not continuation.ended else len(continuation.written) <= 12
        assert continuation.log_probability == pytest.approx(sum(expected), abs=1e-4)


def test_the_most_tokens_after_a_prompt(generator):
    generated = generator.generate("a la playa", max_tokens=2, temperature=100.0, seed=4)
    assert len(generated.nbest[0].written) <= 2
    lengths = [
        len(result.nbest[0].written) for result in generator.generate([""] * 20, max_tokens=3, temperature=100.0)
    ]
    assert max(lengths) == 3
    assert not any(result.nbest[0].ended for result in generator.generate([""] * 5, max_tokens=1, temperature=50.0))


def test_the_length_of_a_prompt_takes_nothing_from_what_follows(generator):
    generated = generator.generate("me gusta " * 30, max_tokens=4, temperature=100.0, nbest=8)
    assert max(len(continuation.written) for continuation in generated.nbest) == 4


def test_a_seed_fixes_the_samples_and_without_one_they_differ(generator):
    assert generator.generate("", seed=5).text == generator.generate("", seed=5).text
    texts = {generator.generate("", temperature=5.0).text for _ in range(8)}
    assert len(texts) > 4
    batched = [result.text for result in generator.generate(["", "el", ""], seed=6)]
    assert batched[0] == generator.generate("", seed=6).text
    assert batched[0] != batched[2]


def test_the_prompt_stays_as_it_was_given(generator):
    generated = generator.generate("  ¿me   gusta ２  ", beam=1)
    assert "¿me   gusta ２" in generated.text
    assert generated.prompt == "  ¿me   gusta ２  "


def test_considered_pieces_are_the_most_probable(generator):
    generated = generator.generate("me", beam=1, max_tokens=4)
    best = generated.nbest[0]
    considered = generated.considered(3)
    assert len(considered) == len(best.written)
    for step, best_piece in zip(considered, best.written, strict=True):
        assert len(step) == 3
        assert [piece.log_probability for piece in step] == sorted((p.log_probability for p in step), reverse=True)
        if best_piece.text == step[0].text:
            assert best_piece.log_probability == pytest.approx(step[0].log_probability, abs=1e-5)
    greedy = [step[0].text for step in considered]
    assert greedy[0] == best.written[0].text
    all_pieces = generated.considered(10_000)
    assert len(all_pieces[0]) == generator.tokenizer.target_size - 3
    assert not {"<pad>", "<unk>", "<s>"} & {piece.text for piece in all_pieces[0]}  # no text has these
    with torch.inference_mode():
        logits = generator.model(empty_source(1), torch.tensor([[2, *ids_of(generator, "me")]]))[0, -1]
    total = 1 - sum(logits.softmax(-1)[:3].tolist())
    assert sum(math.exp(piece.log_probability) for piece in all_pieces[0]) == pytest.approx(total, abs=1e-4)
    assert "</s>" in {piece.text for piece in all_pieces[0]}


@pytest.mark.parametrize("text", ["Me gusta el fútbol.", "", "una palabra" * 60])
def test_a_score_is_the_sum_over_the_pieces(generator, text):
    score = generator.score(text)
    ids = ids_of(generator, text)
    window = Batch(empty_source(1), torch.tensor([[2, *ids]]), torch.tensor([[*ids, 3]]))
    with torch.inference_mode():
        loss = StreamLoss(generator.model)(window)
    assert -score.log_probability == pytest.approx(float(loss.cross_entropy), rel=1e-4)
    assert [piece.text for piece in score.pieces] == generator.tokenizer.target_pieces([*ids, 3])
    assert sum(piece.log_probability for piece in score.pieces) == pytest.approx(score.log_probability)
    assert (score.correct, score.tokens) == (loss.correct, len(ids) + 1)
    words, characters = len(text.split()) + 1, len(text) + 1
    assert score.perplexity_word == pytest.approx(math.exp(loss.cross_entropy / words), rel=1e-4)
    assert score.bits_per_character == pytest.approx(float(loss.cross_entropy) / math.log(2) / characters, rel=1e-4)
    assert score.perplexity == pytest.approx(math.exp(loss.cross_entropy / (len(ids) + 1)), rel=1e-4)


def test_probable_texts_have_higher_scores(generator):
    assert generator.score("Me gusta el fútbol.").perplexity < generator.score("fútbol. el gusta Me").perplexity


def test_a_text_has_a_notebook_display(generator):
    page = generator.generate("<me>", seed=1, temperature=20.0)._repr_html_()
    assert "&lt;me&gt;" in page and "%" in page
    assert (page.index("%") < page.index("&lt;")) == generator.backwards


def test_options_decide_between_drawing_and_searching():
    sampling = DecodingOptions(sample=True, temperature=0.5, top_k=7)
    assert generation_options(sampling, {}) == sampling
    searching = generation_options(sampling, {"beam": 2, "temperature": None})
    assert (searching.sample, searching.beam, searching.temperature, searching.top_k) == (False, 2, 1.0, 0)
    assert generation_options(DecodingOptions(), {"top_p": 0.9}).sample
    assert not generation_options(DecodingOptions(), {"beam": 2}).sample
    assert generation_options(sampling, {"beam": 2, "temperature": 0.4}).sample
    with pytest.raises(UserError, match="there is no key"):
        generation_options(sampling, {"bream": 2})
