"""How a folder's reader is chosen, what a new run contains, and which imports are cached."""

import json
import re

import pytest

from tests.probes.foreign import many_languages_folder, marian_file, marian_folder
from translucid.ground.errors import UserError
from translucid.interop import importing, kind_of, run_resolution
from translucid.interop.importing import import_model
from translucid.interop.marian import from_marian
from translucid.runs.run_folder import RunFolder


def test_the_kind_depends_on_the_files(tmp_path):
    with pytest.raises(UserError, match=r"gone: is not there. Give the files of a model\. .* Marian's are \.npz"):
        kind_of(tmp_path / "gone")
    for name in ("a.txt", "a"):
        (tmp_path / name).mkdir() if name == "a" else (tmp_path / name).touch()
        with pytest.raises(UserError, match=r"holds no model that can be imported. Hugging Face's have config.json"):
            kind_of(tmp_path / name)
    (tmp_path / "a.npz").touch()
    assert kind_of(tmp_path / "a.npz") == "marian"
    (tmp_path / "a" / "b.npz").touch()
    assert kind_of(tmp_path / "a") == "marian"
    (tmp_path / "a" / "config.json").touch()
    assert kind_of(tmp_path / "a") == "huggingface"
    (tmp_path / "a" / "model.bin").touch()
    assert kind_of(tmp_path / "a") == "ctranslate2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model_folder = tmp_path_factory.mktemp("theirs") / "opus"
    marian_folder(model_folder, languages=("es", "pt"))
    return model_folder


def test_a_new_run_has_no_state_and_says_where_it_comes_from(folder, tmp_path):
    imported, configuration = import_model(folder, tmp_path / "run", target_language="pt")
    run = RunFolder(tmp_path / "run")
    assert configuration.data.languages == run.configuration().data.languages == (None, "pt")
    model = run.load_sequence_model(run.configuration(), run.tokenizer())
    # Shared weights count once.
    assert imported.parameters == sum(parameter.numel() for parameter in model.parameters())
    (line,) = (tmp_path / "run" / "provenance.jsonl").read_text().splitlines()
    provenance = json.loads(line)
    assert (provenance["imported"], provenance["kind"]) == (str(folder), "MarianMT")
    assert {file.name for file in run.path.iterdir() if not file.name.startswith(".")} == {
        "config.yaml",
        "model.safetensors",
        "provenance.jsonl",
        "source.model",
        "target.model",
    }
    for overwrite, message in ((False, "holds a run already"), (True, None)):
        if message:
            with pytest.raises(UserError, match=message):
                import_model(folder, tmp_path / "run", overwrite=overwrite)
        else:
            import_model(folder, tmp_path / "run", source_language="en", overwrite=overwrite)
    assert run.configuration().data.languages == ("en", None)


def test_languages_that_the_model_lacks_are_refused_before_the_run_is_written(folder, tmp_path):
    for source in ("en", None):  # a language piece in the source names only the target
        with pytest.raises(UserError, match="does not have the target language 'fr'"):
            import_model(folder, tmp_path / "run", source_language=source, target_language="fr")
    assert not (tmp_path / "run").exists()


def test_a_model_with_a_language_on_each_side_may_get_the_other_one_later(tmp_path):
    many_languages_folder(tmp_path / "m2m")
    _, configuration = import_model(tmp_path / "m2m", tmp_path / "run", target_language="es")
    assert configuration.data.languages == (None, "es")
    with pytest.raises(UserError, match="does not have the target language 'fr'"):
        import_model(tmp_path / "m2m", tmp_path / "other", source_language="en", target_language="fr")


@pytest.mark.parametrize("error", importing._DAMAGE)
def test_damage_of_any_kind_is_one_line(folder, tmp_path, monkeypatch, error):
    def read(folder):
        raise error("what happened")

    monkeypatch.setitem(importing._READERS, "huggingface", read)
    message = f"is damaged, or of a kind that can't be imported ({error.__name__}: "
    with pytest.raises(UserError, match=re.escape(message) + ".*what happened.*Get the folder again"):
        import_model(folder, tmp_path / "run")


def test_a_folder_of_marian_is_imported_with_its_vocabularies(tmp_path):
    marian_file(tmp_path / "theirs")
    vocabulary = tmp_path / "theirs" / "vocab.yml"
    decoder_file = tmp_path / "theirs" / "decoder.yml"
    imported = from_marian(tmp_path / "theirs")
    assert imported.kind == "Marian" and imported.settings["data"]["max_tokens"] == 512
    assert imported.settings["data"]["tokenizer"] == {
        "joint": False,
        "shared_ids": True,
        "languages": {},
        "vocabulary": len(imported.tokenizer.target_vocabulary),
    }
    # Their decoder.yml may name paths of another machine; it is used if files of these names exist here.
    renamed_vocabulary = vocabulary.rename(tmp_path / "theirs" / "other.yml")
    by_model = from_marian_with(decoder_file, ["/their/source.spm", "/their/target.spm"]).tokenizer.fingerprint
    assert by_model != imported.tokenizer.fingerprint
    assert from_marian_with(decoder_file, ["/their/other.yml", "/their/gone.yml"]).tokenizer.fingerprint == by_model
    reimported = from_marian_with(decoder_file, ["/their/other.yml"])
    assert reimported.tokenizer.fingerprint == imported.tokenizer.fingerprint
    decoder_file.unlink()
    for name in ("b-vocab.yml", "c-vocab.yml", "d-vocab.yml"):
        (tmp_path / "theirs" / name).write_bytes(renamed_vocabulary.read_bytes())
    with pytest.raises(UserError, match=r"3 vocabularies stand beside it, and it needs one or two. Put a decoder.yml"):
        from_marian(tmp_path / "theirs")
    (tmp_path / "theirs" / "d-vocab.yml").unlink()
    assert from_marian(tmp_path / "theirs").tokenizer.fingerprint == imported.tokenizer.fingerprint


def test_marians_languages_may_have_embeddings_of_their_own(tmp_path):
    marian_file(tmp_path, ties="target")
    imported = from_marian(tmp_path)
    options, model = imported.settings["data"]["tokenizer"], imported.settings["model"]
    assert (options["joint"], options["shared_ids"]) == (False, False)
    assert (model["share_embeddings"], model["tie_output"]) == (False, True)


def from_marian_with(decoder, names):
    decoder.write_text(f"vocabs: [{', '.join(names)}]\n")
    return from_marian(decoder.parent)


def test_so_many_imports_are_kept(folder, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(run_resolution, "find_cached", lambda kind, made_from: None)
    monkeypatch.setattr(run_resolution, "add_to_cache", lambda kind, made_from, make, most: calls.append((kind, most)))
    run_resolution.resolve_run(folder)
    assert calls == [("imported", 4)]


def test_the_fingerprint_of_a_folder_is_that_of_its_files(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    (folder / "a").write_text("1")
    (folder / "b").write_text("1")
    first = run_resolution._fingerprint(folder)
    (folder / "inside" / "c").write_text("1")
    assert run_resolution._fingerprint(folder) == first and len(first) == 64
    fingerprints = {first}
    (folder / "b").write_text("12")
    fingerprints.add(run_resolution._fingerprint(folder))
    (folder / "b").rename(folder / "c")
    fingerprints.add(run_resolution._fingerprint(folder))
    monkeypatch.setattr(run_resolution, "__version__", "0")
    fingerprints.add(run_resolution._fingerprint(folder))
    folder.rename(tmp_path / "moved")
    fingerprints.add(run_resolution._fingerprint(tmp_path / "moved"))
    assert len(fingerprints) == 5


def test_a_path_of_several_parts_is_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "a" / "b").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "b" / "config.yaml").touch()
    assert str(run_resolution.resolve_run("a/b")) == "a/b"
    (tmp_path / "runs" / "a" / "config.yaml").touch()
    assert str(run_resolution.resolve_run("a")) == "runs/a"
