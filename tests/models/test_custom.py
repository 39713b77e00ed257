"""Models in users' files: trained by name, executed only if named again and checked before training."""

from pathlib import Path

import pytest
import torch

from translucid import train
from translucid.cli.main import run
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.custom import check_contract
from translucid.models.model_options import AttentionOnlyOptions, CustomOptions, RecurrentOptions, TransformerOptions
from translucid.models.user_code import VARIABLE, allow_code
from translucid.runs.configuration import resolve
from translucid.runs.keys import keys

from ..conftest import ROOT, SHAPE

EXAMPLE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8").split("`my_model.py`:\n\n```python\n")[1]
MODEL = EXAMPLE.split("```")[0]
REFERENCE = "my_model.py:GRUTranslator"
SETTINGS = [setting for setting in SHAPE if "model." not in setting]


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # so that it is restored
    monkeypatch.delenv(VARIABLE)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("code") / "my_model.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def custom_run(file, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "custom"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(VARIABLE, "")
        patched.delenv(VARIABLE)
        assert run(train_command(file, corpus, folder)) == 0
    return folder


def train_command(file, corpus, folder, *settings):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
    limits = ["training.max_steps=4", "model.options.width=12", *settings]
    model = ["--model", f"{file}:GRUTranslator"]
    return [str(argument) for argument in ["train", *model, *files, "--no-tune", "--set", *SETTINGS, *limits]]


def variant(tmp_path, before, after):
    """Build the documentation's example model with one change and return it with its options."""
    assert before in MODEL
    file = tmp_path / "my_model.py"
    file.write_text(MODEL.replace(before, after), encoding="utf-8")
    allow_code(file)
    options = CustomOptions(implementation=REFERENCE, options={"width": 12})
    return build_model(options, 20, 20), options


def test_the_example_is_as_short_as_promised():
    assert len([line for line in MODEL.splitlines() if line.strip()]) <= 60


def test_a_run_names_its_model_and_executes_it_only_if_it_is_named_again(custom_run, file, capfd):
    arguments = ["translate", str(custom_run), "I like soccer", "--beam", "3", "--engine", "torch"]
    assert run(arguments) == 2
    stderr = capfd.readouterr().err
    assert stderr.count("\n") == 1 and "translucid --code my_model.py" in stderr
    assert run(["--code", str(file), *arguments, "--alignments"]) == 0
    assert "\t" in capfd.readouterr().out
    assert run(["--code", str(file), "look", str(custom_run), "I like soccer"]) == 0


def test_a_bare_name_is_of_the_file_that_was_allowed(file, corpus, tmp_path):
    command = train_command(Path("my_model.py"), corpus, tmp_path / "run")
    assert run(command) == 2
    assert run(["--code", str(file), *command]) == 0


def test_from_python_a_model_is_named_with_its_folder(file, corpus, tmp_path):
    limits = {"training.max_steps": 1, "model.options.width": 12, "data.tokenizer.vocabulary": 200}
    files = {"valid": corpus / "test.tsv", "settings": limits, "quiet": True}
    folder = train(corpus / "train.tsv", tmp_path / "run", model=f"{file}:GRUTranslator", **files)
    assert "implementation: my_model.py:GRUTranslator" in (folder / "config.yaml").read_text()


def test_ctranslate2_is_refused_by_name(custom_run, file, capfd):
    assert run(["--code", str(file), "translate", str(custom_run), "I like soccer", "--engine", "ctranslate2"]) == 2
    assert capfd.readouterr().err.startswith("error: ")


def test_an_interrupted_run_resumes(custom_run, file, capfd):
    resume = ["train", "--resume", "--out", str(custom_run), "--no-tune", "--set", "training.max_steps=6"]
    assert run(["--code", str(file), *resume]) == 0
    assert "resumed at step 4" in capfd.readouterr().err


def test_an_option_that_the_model_lacks_is_one_line_and_leaves_nothing(file, corpus, tmp_path, capfd):
    assert run(train_command(file, corpus, tmp_path / "run", "model.options.widht=3")) == 2
    assert "has no option 'model.options.widht'. Did you mean 'model.options.width'?" in capfd.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_error_in_the_code_names_its_line(corpus, tmp_path, capfd):
    broken = tmp_path / "my_model.py"
    broken.write_text(MODEL.replace("return Memory(self", "return Memory(self.missing"), encoding="utf-8")
    assert run(train_command(broken, corpus, tmp_path / "run")) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    line = next(i for i, text in enumerate(broken.read_text().splitlines(), 1) if "self.missing" in text)
    assert f"my_model.py, line {line}: AttributeError" in error


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("mask=memory.mask[:, None]", "mask=None", "padding"),
        ("* mask).sum(1) / mask.sum(1)", ").mean(1)", "padding"),
        ("states, hidden = self.decoder(", "states, hidden = self.encoder(", "step by step"),
        ("State(self.hidden[:, rows], self", "State(self.hidden, self", "does not reorder"),
        ("state.hidden)\n", "state.hidden)\n        state.hidden.copy_(hidden)\n", "changes a state"),
        ('{"decoder.0.cross": 1}', '{"decoder.0.cross": 2}', "declares {'decoder.0.cross': 2}"),
        ("return self.look(states, memory, 0)", "return self.look(states.flip(1), memory, 0)", "the future"),
        ("cat([states, context]", "cat([states, context + (replacement is not None)]", "are recorded"),
    ],
)
def test_violations_of_the_contract_are_named(tmp_path, before, after, message):
    torch.manual_seed(2)
    model, options = variant(tmp_path, before, after)
    with pytest.raises(UserError) as error:
        check_contract(model, REFERENCE, options.maps)
    assert message in str(error.value)


def test_a_check_changes_neither_the_model_nor_the_random_state(tmp_path):
    model, options = variant(tmp_path, "batch_first=True", "batch_first=True, num_layers=1")
    model.train()
    before = torch.random.get_rng_state()
    check_contract(model, REFERENCE, options.maps)
    assert model.training and torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "options",
    [
        TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2),
        RecurrentOptions(width=16, attention="bahdanau"),
        RecurrentOptions(width=16, attention="none"),
        AttentionOnlyOptions(width=16, encoder_layers=1, decoder_layers=1),
    ],
    ids=lambda options: options.kind,
)
def test_built_in_models_keep_the_contract(options):
    check_contract(build_model(options, 20, 20), "ours", options.maps)


def test_it_begins_with_the_settings_of_small():
    configuration = resolve(preset=REFERENCE, assignments=["training.max_steps=7"])
    small = resolve(preset="small", assignments=["training.max_steps=7"])
    assert configuration.training == small.training and configuration.data == small.data
    assert configuration.model == CustomOptions(implementation=REFERENCE)
    assert not configuration.vocabulary_given


@pytest.mark.parametrize("setting", ["training.compile=true", "training.adapter_rank=2"])
def test_what_needs_a_transformer_is_refused_by_name(setting):
    with pytest.raises(UserError, match=setting.partition("=")[0]):
        resolve(preset=REFERENCE, assignments=[setting])


def test_its_settings_are_listed():
    (implementation,) = [key for key in keys() if key.name == "model.implementation"]
    assert implementation.default == "" and implementation.choice == "model.kind=custom"
