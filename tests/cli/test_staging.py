"""A run replaces another only when complete: errors, interruptions and kills leave the old one unchanged."""

import shutil

import pytest

from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, interrupted_configuration, staged
from translucid.training.trainer import Trainer

STEPS = ["training.max_steps=2", "training.validate_every=2", "training.validate_sentences=2"]


def content(folder):
    """Return the files of a run without the hidden ones."""
    names = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    return {str(name): (folder / name).read_bytes() for name in names if not str(name).startswith(".")}


@pytest.fixture
def base(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "base")


@pytest.fixture
def call_train(call, corpus):
    """Train with few steps: call_train(out, *options)."""

    def run_training(out, *options, settings=()):
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
        return call("train", *files, *options, "--out", out, "--no-tune", "--set", *STEPS, *settings)

    return run_training


@pytest.mark.parametrize("name", ["base", "./base", "sub/../base", "link", "linked files"])
@pytest.mark.parametrize("part", ["", "encoder="])
def test_a_run_is_not_replaced_by_one_that_begins_with_it(call_train, base, tmp_path, monkeypatch, name, part):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("base")
    (tmp_path / "linked files").mkdir()
    for file in base.iterdir():
        (tmp_path / "linked files" / file.name).symlink_to(file)
    before = content(base)
    result = call_train("base", "--init-from", f"{part}{name}", "--overwrite")
    assert result.code == 2
    if not part and name != "linked files":  # a translator is no encoder, and links are not followed
        assert "base: is a run from which the new run is initialized. Choose another folder." in result.err
    assert content(base) == before


def test_what_a_run_holds_out_is_not_replaced_by_a_run_that_reads_it(call, call_train, corpus, base):
    shutil.copy(corpus / "test.tsv", base / "state" / "held-out.tsv")
    before = content(base)
    result = call("train", "--train", base / "state" / "held-out.tsv", "--out", base, "--overwrite")
    assert result.code == 2 and f"is part of the run in {base}, which would be replaced" in result.err
    assert content(base) == before


@pytest.mark.parametrize("fault", ["damaged", "no weights", "other width", "no such part", "no pairs", "long pairs"])
def test_a_failed_start_leaves_the_run_to_be_replaced(call_train, base, small_run, tmp_path, fault):
    source = shutil.copytree(small_run, tmp_path / "source")
    options, settings = ["--init-from", source, "--overwrite"], []
    match fault:
        case "damaged":
            file = source / "model.safetensors"
            file.write_bytes(file.read_bytes()[:2000])
        case "no weights":
            (source / "model.safetensors").unlink()
        case "other width":
            settings = ["model.width=32"]
        case "no such part":
            settings = ["training.freeze=[decoder.9]"]
        case "no pairs":
            (tmp_path / "none.tsv").write_text("a\t\n")
            options += ["--train", tmp_path / "none.tsv"]
            settings = ["data.filter.max_characters=1"]
        case "long pairs":
            settings = ["data.max_tokens=2"]
    before = content(base)
    result = call_train(base, *options, settings=settings)
    assert result.code == 2 and "internal error" not in result.err, result.err
    assert content(base) == before
    # A new folder is removed, so that the corrected command can start.
    failure = call_train(tmp_path / "new", *options, settings=settings)
    assert failure.code == 2 and not (tmp_path / "new").exists()


def test_after_a_refusal_the_corrected_command_begins(call_train, base, tmp_path):
    assert call_train(tmp_path / "new", "--init-from", base, settings=["model.width=32"]).code == 2
    result = call_train(tmp_path / "new", "--init-from", base)
    assert result.code == 0, result.err


def test_a_new_run_contains_nothing_of_the_replaced_one(call_train, base):
    (base / "tuned.json").write_text("{}")
    (base / "notes.txt").write_text("mine")
    result = call_train(base, "--overwrite", "--model", "tiny", settings=["data.tokenizer.vocabulary=150"])
    assert result.code == 0, result.err
    run = RunFolder(base)
    assert run.tokenizer().target_size == 150 and run.load_state()[1]["place"]["step"] == 2
    assert (base / "notes.txt").exists() and not (base / "tuned.json").exists()
    assert not [item for item in base.iterdir() if item.name.startswith(".") and item.name != ".lock"]


def test_a_failed_import_leaves_the_run_to_be_replaced(base, tmp_path):
    before = content(base)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "config.json").write_text("{}")
    with pytest.raises(UserError):
        import_model(tmp_path / "theirs", base, overwrite=True)
    assert content(base) == before


class KillError(BaseException):
    """Stops the work where a kill would."""


@pytest.mark.parametrize("steps", range(8))
def test_a_crash_leaves_the_old_run_or_the_new_one(base, tmp_path, monkeypatch, steps):
    """Kill the process after the first `steps` renames by which one run replaces another."""
    run, replacement = RunFolder(base), shutil.copytree(base, tmp_path / "other")
    (replacement / "metrics.jsonl").write_text('{"kind": "training", "step": 7}\n')
    old, new = content(base), content(replacement)
    remaining = steps

    def killed_after(step):
        def counted_step(*args):
            nonlocal remaining
            if not remaining:
                raise KillError
            remaining -= 1
            return step(*args)

        return counted_step

    def replace(patched):
        with run.locked(), staged(run, overwrite=True) as fresh:
            shutil.copytree(replacement, fresh.path, dirs_exist_ok=True)
            patched.setattr("pathlib.Path.rename", killed_after(type(base).rename))
            patched.setattr("pathlib.Path.replace", killed_after(type(base).replace))

    with monkeypatch.context() as patched, pytest.raises(KillError):
        replace(patched)
    finish_replacing(run)
    assert content(base) == (new if steps else old)


def test_the_run_that_is_there_is_not_taken_for_the_one_that_was_to_replace_it(call, base):
    before = RunFolder(base).configuration()
    shutil.copytree(base, base.parent / "copy")
    (base.parent / "copy").rename(base / ".preparing")  # as a kill leaves it
    with pytest.raises(UserError, match="interrupted"):
        interrupted_configuration(RunFolder(base))
    result = call("train", "--resume", "--out", base)
    assert result.code == 2 and "Repeat that command, with --overwrite" in result.err
    assert RunFolder(base).configuration() == before


def test_ctrl_c_while_a_run_is_prepared(call, call_train, base, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    before = content(base)
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "save", interrupted)
        settings = ["data.tokenizer.vocabulary=150"]
        assert call_train(base, "--overwrite", "--model", "tiny", settings=settings).code == 130
        assert call_train(tmp_path / "new", "--init-from", base).code == 130
    assert content(base) == before
    result = call("train", "--resume", "--out", tmp_path / "new", "--no-tune")
    assert result.code == 0, result.err
    assert RunFolder(tmp_path / "new").load_state()[1]["place"]["step"] == 2


def test_a_link_in_the_place_of_what_is_prepared_is_not_followed(call_train, base, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    (base / ".preparing").symlink_to(tmp_path / "mine")
    result = call_train(base, "--overwrite", "--model", "tiny")
    assert result.code == 2 and "is a link, and would be written through" in result.err
    assert (tmp_path / "mine" / "letter.txt").exists()
