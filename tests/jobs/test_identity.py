"""The identity of a job changes with each of its fields, so that no killed job is continued with other options."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from translucid.api.pivot_translator import FirstStep
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.noisy_channel import ChannelWeights
from translucid.jobs import job as job_module
from translucid.jobs.job import LineJob, TranslationJob, state_of
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.run_folder import RunFolder

SOURCE = Path(job_module.__file__).parents[1]
for file in SOURCE.rglob("*.py"):
    if "Job)" in file.read_text(encoding="utf-8"):  # jobs may be anywhere, and only those in imported files are known
        import_module(".".join(["translucid", *file.relative_to(SOURCE).with_suffix("").parts]))


def subclasses(kind: type) -> list[type]:
    """Return all jobs of the package, and not those that tests define."""
    kinds = [kind] if kind is not LineJob else []
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("translucid."):
            kinds += subclasses(subclass)
    return kinds


KINDS = subclasses(LineJob)
assert len(KINDS) >= 8


@pytest.fixture
def adapters(monkeypatch):
    """Let each name of an adapter be found."""
    find = classmethod(lambda cls, name, folder: types.SimpleNamespace(fingerprint=f"adapter {name}"))
    monkeypatch.setattr(job_module.Adapter, "find", find)


def another(hint: Any, value: Any, folder: Path) -> Any:
    """Return another value of a type than `value`."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if get_origin(hint) is tuple:
        return (another(get_args(hint)[0], None, folder),)
    if hint is bool:
        return not value
    if hint in (int, float):
        return (value or 0) + 1
    if hint is str:
        return f"{value}, changed"
    if hint is Path:
        file = folder / "pairs.tsv"
        file.write_text("a\tb\n")
        return file
    if hint is DecodingOptions:
        return value.model_copy(update={"beam": value.beam + 1})
    if hint is Configuration:
        return resolve(preset="tiny", overrides={"data.source_language": "en"})
    if hint is ChannelWeights:
        return value._replace(length=value.length + 1)
    if hint == Mapping[str, tuple[str, ...]]:
        return {"ablate": ("encoder.0.self.head.0",)}
    if hint is FirstStep:
        return FirstStep(another(Path, None, folder), resolve())
    raise TypeError(f"say here what another {hint} is")


def job_of(kind: type, run: Path) -> Any:
    if "options" in {field.name for field in fields(kind)}:
        return kind(run, DecodingOptions())
    return kind(run)


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_is_part_of_the_identity(kind, small_run, tmp_path, adapters):
    job = job_of(kind, small_run)
    before = job.identity("cpu")
    assert before == job.identity("cpu") != job.identity("cuda")
    hints = get_type_hints(kind)
    for field in fields(kind):
        if field.name == "device":  # what counts is the device in use
            continue
        changed = replace(job, **{field.name: another(hints[field.name], getattr(job, field.name), tmp_path)})
        if field.name == "run":
            continue
        assert changed.identity("cpu") != before, field.name


def test_no_two_kinds_of_jobs_are_the_same(small_run):
    identities = [job_of(kind, small_run).identity("cpu") for kind in KINDS]
    assert all(first != second for i, first in enumerate(identities) for second in identities[:i])


def test_a_new_field_is_noticed_without_another_line(small_run):
    extended = make_dataclass("Extended", [("shout", bool, False)], bases=(TranslationJob,), frozen=True)
    quiet, loud = (extended(small_run, DecodingOptions(), shout=shout).identity("cpu") for shout in (False, True))
    assert quiet != loud and loud["`shout`"] is True

    @dataclass(frozen=True)
    class Unknown(TranslationJob):
        mark: object = object()

    with pytest.raises(TypeError, match="the state of a object is unknown"):
        Unknown(small_run, DecodingOptions()).identity("cpu")


def test_files_and_runs_count_by_their_content(small_run, tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("a\tb\n")
    first = state_of(file)
    file.with_name("moved.tsv").write_text("a\tb\n")
    assert state_of(file.with_name("moved.tsv")) == first
    file.write_text("a\tc\n")
    assert state_of(file) != first
    assert state_of(tmp_path / "missing") == str(tmp_path / "missing")
    assert state_of((small_run, None)) == [state_of(small_run), None]
    assert state_of(small_run)["the model"] == RunFolder(small_run).model_digest()
    configuration = RunFolder(small_run).configuration()
    assert state_of(configuration) == state_of(RunFolder(small_run).configuration())
    assert state_of(configuration) != state_of(configuration.model_copy(update={"preset": "small"}))
