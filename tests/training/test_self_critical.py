"""Self-critical training: the reward, the gradient estimate, and exact resumption."""

import os
import random
import signal
from itertools import product

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from bitext.pair import Pair
from tests.probes.forked import forked_group
from tests.training.conftest import SHORT_CAPTIONS, TINY, TRAINING
from tests.training.test_resume import assert_same_run
from translucid.captions import self_critical
from translucid.captions.caption_scores import cider_d, papers_tokens
from translucid.captions.model import CaptioningLSTM, CaptioningTransformer
from translucid.captions.options import CaptionerOptions, CaptioningTransformerOptions
from translucid.captions.self_critical import PRECISION, CaptionReward, SelfCritical, advantages, draw, precisions
from translucid.data.batching import Batch
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.ground.special import SPECIAL
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder

IMAGE_ENCODER = {"size": 16, "stride": 8, "channels": 4}
MODELS = [
    lambda: CaptioningLSTM(6, CaptionerOptions(image_encoder=IMAGE_ENCODER, width=8, dropout=0.3)),
    lambda: CaptioningTransformer(
        6,
        CaptioningTransformerOptions(
            image_encoder=IMAGE_ENCODER, width=8, heads=2, feed_forward=8, decoder_layers=1, dropout=0.3
        ),
    ),
]
END = SPECIAL.end
REWARDS = {(END,): 0.3, (4, END): 1.0, (5, END): -2.0, (4, 4): 0.5, (4, 5): 3.0, (5, 4): 0.1, (5, 5): 7.0}
"""The rewards of all captions of up to two tokens in a language of two words; longer captions are truncated."""


@pytest.fixture(params=MODELS, ids=["lstm", "transformer"])
def model(request):
    return request.param().train()


@pytest.fixture
def image():
    return torch.randint(256, (1, 16, 16, 3), dtype=torch.uint8)


def probabilities(model, image):
    """Return p(c) of each caption in REWARDS, with gradients, computed step by step."""
    memory, caption_probabilities = model.eval().encode(image), []
    for caption in REWARDS:
        log_p = torch.zeros(())
        for t, token in enumerate(caption):
            logits = model.decode(memory, torch.tensor([[model.bos, *caption[:t]]]))[0, -1, 3:]
            log_p = log_p + logits.log_softmax(-1)[token - 3]
        caption_probabilities.append(log_p.exp())
    return torch.stack(caption_probabilities)


def test_on_average_the_gradient_is_that_of_the_expected_reward(model, image, monkeypatch):
    learned = [parameter for name, parameter in model.named_parameters() if not name.startswith("source_embedding.net")]
    p = probabilities(model, image)
    assert p.sum().item() == pytest.approx(1, abs=1e-5)
    expected = torch.autograd.grad((p * torch.tensor([*REWARDS.values()])).sum(), learned, allow_unused=True)
    p, model = p.detach(), model.train()
    critical = SelfCritical(model, lambda captions, _: [REWARDS[tuple(caption)] for caption in captions], samples=2)
    actual_gradients = [torch.zeros_like(parameter) for parameter in learned]
    batch = Batch(image, torch.tensor([[model.bos]]), torch.tensor([[END]]))
    for (i, first), (j, second) in product(enumerate(REWARDS), repeat=2):
        samples = torch.tensor([[*caption, 0][:2] for caption in (first, second)])
        monkeypatch.setattr(self_critical, "draw", lambda *_, samples=samples: samples)
        loss = critical(batch)
        assert loss.reward == pytest.approx(REWARDS[first] + REWARDS[second]) and loss.samples == 2
        assert loss.tokens == len(first) + len(second) and model.training
        assert loss.cross_entropy == pytest.approx(-float((p[i] * p[j]).log()), rel=1e-3)
        gradients = torch.autograd.grad(loss.smoothed, learned, allow_unused=True)
        for total, gradient in zip(actual_gradients, gradients, strict=True):
            total -= 0 if gradient is None else p[i] * p[j] * gradient
    assert max(gradient.abs().max() for gradient in expected if gradient is not None) > 0.01
    for ours, theirs in zip(actual_gradients, expected, strict=True):
        torch.testing.assert_close(ours, torch.zeros_like(ours) if theirs is None else theirs, rtol=1e-3, atol=1e-5)


def test_captions_are_sampled_by_their_probabilities(model, image):
    p = probabilities(model, image).detach()
    images = torch.cat([torch.zeros_like(image), image])
    samples = draw(model, model.encode(images), 4000, 2)[4000:]
    captions = [tuple(filter(None, row)) for row in samples.tolist()]  # without padding, whose id is 0
    for caption, probability in zip(REWARDS, p.tolist(), strict=True):
        assert captions.count(caption) / 4000 == pytest.approx(probability, abs=0.03)


def test_advantages_are_over_the_mean_of_the_others():
    rewards = torch.rand(3, 5)
    result = advantages(rewards)
    torch.testing.assert_close(result.sum(1), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(result[1, 2], rewards[1, 2] - rewards[1, [0, 1, 3, 4]].mean())


@pytest.fixture(scope="module")
def captions(scenes):
    """Return a tokenizer and the captions of each training image."""
    image_captions = {}
    for name, text in (line.split("\t") for line in (scenes / "train.tsv").open()):
        image_captions.setdefault(name, []).append(text.strip())
    pairs = [Pair("", text) for texts in image_captions.values() for text in texts]
    return Tokenizer.learn(pairs, TokenizerOptions(vocabulary=200), seed=1), list(image_captions.values())


def test_the_reward_is_the_figure_that_evaluation_gives(captions):
    tokenizer, texts = captions
    ids = [tokenizer.encode_target(image_captions) for image_captions in texts]
    hypotheses = [image_captions[0] for image_captions in reversed(texts)]
    expected = cider_d(
        [*map(papers_tokens, hypotheses)], [[*map(papers_tokens, image_captions)] for image_captions in texts]
    )
    assert max(expected) > 0.5
    reward = CaptionReward(tokenizer, ids, precision=0)  # without end tokens and precision, only CIDEr-D remains
    rewards = [
        reward(tokenizer.encode_target([text]), image_captions)[0]
        for text, image_captions in zip(hypotheses, ids, strict=True)
    ]
    assert rewards == pytest.approx(expected)
    best = expected.index(max(expected))
    (precision,) = precisions([papers_tokens(hypotheses[best])], [*map(papers_tokens, texts[best])])
    assert precision > 0
    with_precision = CaptionReward(tokenizer, ids)(tokenizer.encode_target([hypotheses[best]]), ids[best])
    assert with_precision == pytest.approx([expected[best] + PRECISION * precision])


def test_precisions_are_those_of_bleu():
    random.seed(1)
    for _ in range(50):
        words, *references = (random.choices("abcd", k=random.randint(1, 9)) for _ in range(4))
        bleu = BLEU(tokenize="none", force=True, smooth_method="none")
        score = bleu.corpus_score([" ".join(words)], [[" ".join(reference)] for reference in references])
        assert precisions([words], references) == [pytest.approx(score.bp * sum(score.precisions) / 400)]
    assert precisions([[]], [["a"]]) == [0]


def test_ending_where_references_end_is_rewarded(captions):
    tokenizer, texts = captions

    def encode_with_end(image_captions):
        return [[*caption, END] for caption in tokenizer.encode_target(image_captions)]

    ids = list(map(encode_with_end, texts))
    reward = CaptionReward(tokenizer, ids)
    caption = tokenizer.encode_target(texts[0][:1])[0]
    ended, cut, shortened = reward([[*caption, END], caption, [*caption[:-2], END]], ids[0])
    assert ended > cut > shortened


def test_training_increases_the_reward(train_captioner, tmp_path, monkeypatch):
    monkeypatch.setattr(self_critical, "MAX_LENGTH_RATIO", 1)  # an undertrained model rarely predicts the end token
    settings = ["model.dropout=0", "training.learning_rate=0.02", "training.warmup=20", "training.cooldown=0"]
    limits = ["training.validate_every=60", "training.max_steps=60", "training.self_critical=0.66", SHORT_CAPTIONS]
    train_captioner(tmp_path / "run", "caption-soft", *settings, *limits)
    rows = [row for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"]
    rewards = [row["reward"] for row in rows if "reward" in row]
    assert [row["step"] for row in rows if "reward" in row] == [*range(22, 61, 2)]
    assert rewards[-1] > 1.2 * rewards[8] > 0  # the first rewards are means over few updates


def test_resuming_before_and_after_the_start_of_self_critical_updates(train_captioner, tmp_path, monkeypatch):
    from translucid.training.trainer import Trainer

    update = Trainer._update

    def interrupted(self, batches, *rest):
        update(self, batches, *rest)
        if self.progress.step + 1 in (3, 8):
            os.kill(os.getpid(), signal.SIGINT)

    settings = ["caption-transformer", "training.self_critical=0.45", "training.max_steps=9", SHORT_CAPTIONS]
    train_captioner(tmp_path / "whole", *settings)
    monkeypatch.setattr(Trainer, "_update", interrupted)
    for _ in range(2):
        with pytest.raises(Interrupted):
            train_captioner(tmp_path / "parts", *settings, resume=True)
    monkeypatch.setattr(Trainer, "_update", update)
    train_captioner(tmp_path / "parts", *settings, resume=True)
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_several_processes_resume_exactly(scenes, tmp_path):
    settings = [*TINY, *TRAINING, SHORT_CAPTIONS, "training.self_critical=1", "training.cooldown=0"]
    files = ["--train", scenes / "train.tsv", "--valid", scenes / "valid.tsv", "--images", scenes / "images.tar"]

    def train(run, steps, *options):
        arguments = ["train", "--model", "caption-soft", *files, "--out", run, *options, "--set", *settings]
        job = forked_group(*arguments, f"training.max_steps={steps}")
        output, _ = job.communicate()
        assert job.returncode == 0, output

    train(tmp_path / "whole", 4)
    train(tmp_path / "parts", 2)
    train(tmp_path / "parts", 4, "--resume")
    ours, theirs = (RunFolder(tmp_path / name).load_state()[0] for name in ("parts", "whole"))
    assert "process.1.cpu" in ours and ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.mark.parametrize(
    ("preset", "setting", "reason"),
    [
        ("tiny", "training.seed=1", "is for models that write about images"),
        ("caption-hard", "training.seed=1", "does not train the attention of model.attention=hard"),
        ("caption-soft", "training.sharded=true", "from whole models, not from training.sharded"),
    ],
)
def test_unsupported_settings_are_refused(preset, setting, reason):
    resolve(preset="caption-soft", assignments=["training.self_critical=0.5"])
    with pytest.raises(UserError, match=rf"training\.self_critical .*{reason}"):
        resolve(preset=preset, assignments=["training.self_critical=0.5", setting])
