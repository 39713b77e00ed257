"""Fine-tuning and adapters on the command line: results, messages and errors."""

import json
import shutil

import pytest
import torch

from tests.conftest import SHORT
from translucid import Translator
from translucid.cli.main import run
from translucid.data.stores.store import CorpusStore
from translucid.ground.errors import UserError
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors

LIMITS = ["training.max_steps=12", "training.validate_every=6", "training.validate_sentences=5"]
LORA = [
    *LIMITS,
    *SHORT,
    "training.adapter_rank=2",
    "training.learning_rate=0.1",
    "training.warmup=1",
    "training.averaging=0",
]
LAYERS = "training.adapter_parts=[attention,feed-forward]"
TEXTS = ["I like soccer.", "She works at the hospital."]


@pytest.fixture(scope="module")
def tuned(corpus, small_run, tmp_path_factory):
    """A base run and two adapters for it, with random weights large enough to change translations."""
    folder = tmp_path_factory.mktemp("tuned")
    shutil.copytree(small_run, folder / "base")
    files = [
        "--train",
        corpus / "test.tsv",
        "--valid",
        corpus / "test.tsv",
        "--init-from",
        folder / "base",
        "--no-tune",
    ]
    for name in ("one", "other"):
        settings = [*LORA, f"training.seed={len(name)}", *[LAYERS] * (name == "other")]
        assert run([str(a) for a in ["train", *files, "--out", folder / name, "--set", *settings]]) == 0
        # Random weights, so that the adapter changes translations whichever checkpoint was best.
        adapter = folder / name / "adapter.safetensors"
        tensors, facts = load_tensors(adapter)
        torch.manual_seed(len(name))
        tensors = {key: torch.randn_like(tensor) for key, tensor in tensors.items()}
        save_tensors(adapter, tensors, facts)
        merged, model_facts = load_tensors(folder / "base" / "model.safetensors")
        for key in {key.rpartition(".")[0] for key in tensors}:
            merged[key] = merged[key] + facts["scale"] * tensors[f"{key}.up"] @ tensors[f"{key}.down"]
        save_tensors(folder / name / "model.safetensors", merged, model_facts)
    return folder


def test_a_share_of_an_epoch_is_mixed_in(call, corpus, small_run, tmp_path):
    files = ["--train", corpus / "test.tsv", "--mix", f"{corpus / 'train.tsv'}=0.5", "--valid", corpus / "test.tsv"]
    general = ["--valid-general", corpus / "train.tsv"]
    result = call(
        "train", "--init-from", small_run, *files, *general, "--no-tune", "--out", tmp_path / "run", "--set", *LIMITS
    )
    assert result.code == 0, result.err
    assert "320 pairs" in result.err and "on the rest (--valid-general)" in result.err
    folder = RunFolder(tmp_path / "run")
    assert folder.configuration().data.mix == {str(corpus / "train.tsv"): 0.5}
    header = json.loads((folder.corpus_folder / "index.jsonl").read_text().splitlines()[0])
    assert CorpusStore(folder.corpus_folder).open(header["identity"]).sizes == [20, 300]
    tokenizers = [(run / "tokenizer.model").read_bytes() for run in (small_run, tmp_path / "run")]
    assert tokenizers[0] == tokenizers[1]


@pytest.mark.parametrize("argument", ["general.tsv", "general.tsv=much", "=0.3"])
def test_a_share_must_be_a_number(call, corpus, tmp_path, argument):
    result = call("train", "--train", corpus / "train.tsv", "--mix", argument, "--out", tmp_path / "run")
    assert result.code == 2 and "Write --mix general.tsv=0.3." in result.err


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_with_an_adapter_a_run_says_what_the_tuned_one_says(tuned, engine):
    base = Translator.load(tuned / "base", "cpu", engine)
    base_texts = [translation.text for translation in base.translate(TEXTS)]
    for name in ("one", "other", "one"):
        expected = Translator.load(tuned / name, "cpu", engine).translate(TEXTS)
        adapted = base.with_adapter(tuned / name)
        translations = adapted.translate(TEXTS)
        assert (
            [translation.text for translation in translations]
            == [translation.text for translation in expected]
            != base_texts
        )
        for translation, reference in zip(translations, expected, strict=True):
            assert translation.score == pytest.approx(reference.score, abs=1e-4)
        samples = [
            translator.translate(TEXTS, sample=True, seed=3) for translator in (adapted, Translator.load(tuned / name))
        ]
        # Our own engine draws both.
        assert [translation.text for translation in samples[0]] == [translation.text for translation in samples[1]]
    assert adapted.with_adapter(None).engine is base.engine
    assert [translation.text for translation in base.translate(TEXTS)] == base_texts
    before = load_tensors(tuned / "base" / "model.safetensors")[0]
    assert all(torch.equal(base.model.get_parameter(name).data, before[name]) for name in before)
    loaded = Translator.load(tuned / "base", "cpu", engine, adapter=tuned / "one" / "adapter.safetensors")
    assert [translation.text for translation in loaded.translate(TEXTS)] == [
        translation.text for translation in translations_of(tuned / "one", engine)
    ]


def test_earlier_translations_keep_their_adapter(tuned):
    base = Translator.load(tuned / "base", "cpu", "torch")
    before, attention_before = base.translate(TEXTS[0]), base.translate(TEXTS[0]).attention
    probabilities = base.translate(TEXTS[0]).word_probabilities
    adapted = base.with_adapter(tuned / "one")
    assert adapted.translate(TEXTS[0]).word_probabilities != probabilities  # the adapter has an effect
    assert before.word_probabilities == probabilities
    assert all(torch.equal(before.attention[name], weights) for name, weights in attention_before.items())


def test_translators_between_other_languages_keep_their_adapter(tuned):
    base = Translator.load(tuned / "base", "cpu", "torch")
    sibling = base.between("en", "es")
    bare = sibling.translate(TEXTS[0]).word_probabilities
    adapted = base.with_adapter(tuned / "one")
    expected = adapted.translate(TEXTS[0]).word_probabilities
    assert sibling.translate(TEXTS[0]).word_probabilities == bare != expected
    assert adapted.between("en", "es").translate(TEXTS[0]).word_probabilities == expected
    assert sibling.with_adapter(tuned / "one").translate(TEXTS[0]).word_probabilities == expected


def test_an_adapter_keeps_the_terms_and_shares_all_other_weights(tuned):
    base = Translator.load(tuned / "base", "cpu", "torch")
    adapted = base.with_terms([("soccer", "playa")]).with_adapter(tuned / "one")
    assert "playa" in adapted.translate(TEXTS[0]).text.lower()
    names = {name.rpartition(".")[0] for name in load_tensors(tuned / "one" / "adapter.safetensors")[0]}
    for name, weight in base.model.named_parameters():
        assert (adapted.model.get_parameter(name) is weight) == (name not in names), name


def translations_of(folder, engine):
    return Translator.load(folder, "cpu", engine).translate(TEXTS)


def test_by_file_by_run_and_by_name(call, tuned):
    (tuned / "base" / "adapters").mkdir(exist_ok=True)
    shutil.copy(tuned / "one" / "adapter.safetensors", tuned / "base" / "adapters" / "mine.safetensors")
    expected = call("translate", tuned / "one", *TEXTS).out
    for adapter in ("mine", tuned / "one", tuned / "one" / "adapter.safetensors"):
        assert call("translate", tuned / "base", *TEXTS, "--adapter", adapter).out == expected, adapter
    assert call("translate", tuned / "base", *TEXTS).out != expected
    result = call("translate", tuned / "base", *TEXTS, "--adapter", "mime")
    assert result.code == 2 and "there is no adapter 'mime'. Did you mean 'mine'" in result.err


def test_a_job_with_another_adapter_does_not_resume(tuned):
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.jobs.job import TranslationJob

    identities = [
        TranslationJob(tuned / "base", DecodingOptions(), adapter=name and str(tuned / name)).identity("cpu")
        for name in (None, "one", "other")
    ]
    assert len({identity["the adapter"] for identity in identities}) == 3


def test_an_adapter_is_a_small_file_of_the_learned_weights(tuned):
    tensors, facts = load_tensors(tuned / "one" / "adapter.safetensors")
    base = load_tensors(tuned / "base" / "model.safetensors")[0]
    assert {key.rpartition(".")[0] for key in tensors} < base.keys()
    assert facts["base"] == RunFolder(tuned / "base").model_digest()


def test_adapters_of_other_runs_are_refused(tuned, tmp_path):
    with pytest.raises(UserError, match="belongs to another model"):
        Translator.load(tuned / "one", adapter=tuned / "other")
    with pytest.raises(UserError, match=r"there is no adapter .*Give its file, or put it into"):
        Translator.load(tuned / "one", adapter="nothing")
    with pytest.raises(UserError, match="is no adapter"):
        Translator.load(tuned / "base", adapter=tuned / "base" / "model.safetensors")
    tensors, facts = load_tensors(tuned / "one" / "adapter.safetensors")
    name = next(iter(tensors)).rpartition(".")[0]
    cases = {
        "another shape": {**tensors, f"{name}.up": tensors[f"{name}.up"][1:]},
        "another rank": {**tensors, f"{name}.up": tensors[f"{name}.up"][:, 1:]},
        "one side": {key: tensor for key, tensor in tensors.items() if key != f"{name}.up"},
        "another name": {**tensors, "strange.up": torch.ones(2, 2), "strange.down": torch.ones(2, 2)},
    }
    for wrong_tensors in cases.values():
        save_tensors(tmp_path / "wrong.safetensors", wrong_tensors, facts)
        with pytest.raises(UserError, match="does not fit the model"):
            Translator.load(tuned / "base", "cpu", "torch", adapter=tmp_path / "wrong.safetensors")
    content = bytearray((tuned / "one" / "adapter.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        Translator.load(tuned / "base", "cpu", "torch", adapter=tmp_path / "damaged.safetensors")


def test_one_that_does_not_fit_leaves_the_other_on(tuned, tmp_path):
    tensors, facts = load_tensors(tuned / "one" / "adapter.safetensors")
    save_tensors(
        tmp_path / "wrong.safetensors", {**tensors, "a.up": torch.ones(2, 2), "a.down": torch.ones(2, 2)}, facts
    )
    translator = Translator.load(tuned / "base", "cpu", "torch", adapter=tuned / "one")
    expected = [translation.text for translation in translator.translate(TEXTS)]
    with pytest.raises(UserError, match="does not fit the model: a"):
        translator.with_adapter(tmp_path / "wrong.safetensors")
    assert [translation.text for translation in translator.translate(TEXTS)] == expected


def test_the_general_validation_text_can_not_change(call, corpus, small_run, tmp_path):
    (tmp_path / "other.tsv").write_text("A dog.\tUn perro.\n")
    files = ["--train", corpus / "test.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run", "--no-tune"]
    steps = ["--set", "training.max_steps=2", "training.validate_every=2", "training.validate_sentences=3"]
    first = call("train", "--init-from", small_run, *files, "--valid-general", corpus / "train.tsv", *steps)
    assert first.code == 0, first.err
    # The key has the setting's former name, so that older runs can still compare their scores.
    facts = RunFolder(tmp_path / "run").load_state()[1]
    assert facts["validated on"]["training.may_forget"] == "1.0"
    resumed = ["train", "--resume", "--out", tmp_path / "run", "--no-tune"]
    result = call(*resumed, "--valid-general", tmp_path / "other.tsv")
    assert result.code == 2 and "the general validation text (data.valid_general) has changed" in result.err
    result = call(*resumed, "--valid", tmp_path / "other.tsv", "--set", "training.max_steps=4")
    assert result.code == 0, result.err
    assert "scores are not compared" in result.err
    # No gain is reported for --valid, whose pairs have changed.
    assert "(--valid-general)" in result.err and "(--valid)" not in result.err
