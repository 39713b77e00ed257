"""A floor imports only from floors below it; no file is too long to read in one go."""

import ast
from pathlib import Path

import pytest

import translucid

HOUSE = Path(translucid.__file__).parent
FLOORS = [
    {"__init__", "ground"},
    {"kernels"},
    {"attention"},
    {"layers"},
    {"models"},
    {"data"},
    {"builtin", "memory"},
    {"decoding"},
    {"evaluation"},
    {"inspection"},
    {"runs"},
    {"engines"},
    {"translation", "caption", "generation", "examiner"},
    {"interop"},
    {"documents"},
    {"translator", "captioner", "text_classifier", "generator", "embedder"},
    {"segment_translator"},
    {"scoring", "caption_scoring", "confidence_fitting", "validation_fitting"},
    {"alignment_fitting"},
    {"training"},
    {"demonstration", "caption_demonstration"},
    {"jobs"},
    {"serving"},
    {"lessons"},
    {"cli"},
    {"__main__"},
]
FILES = sorted(HOUSE.rglob("*.py"))


def floor_of(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def room_of(file: Path) -> str:
    return file.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_rooms(source: str) -> set[str]:
    """Return the rooms of this package that a source imports, also inside functions."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "translucid" and len(parts) > 1 and any(parts[1] in rooms for rooms in FLOORS):
                rooms.add(parts[1])
    return rooms


def test_every_room_is_on_a_floor():
    known = set().union(*FLOORS)
    assert {room_of(file) for file in FILES} == known


def test_imports_go_down():
    upwards = {}
    for file in FILES:
        here = room_of(file)
        if here == "__init__":  # it imports lazily
            continue
        above = {room for room in imported_rooms(file.read_text()) if room != here and floor_of(room) >= floor_of(here)}
        if above:
            upwards[str(file.relative_to(HOUSE))] = above
    assert not upwards


@pytest.mark.parametrize("room", ["runs", "engines", "translation", "translator"])
def test_inference_does_not_need_training(room):
    """Nothing that is imported on the way leads to training either, whatever the floors may become."""
    met, coming = set(), {room}
    while coming:
        met |= coming
        files = [file for file in FILES if room_of(file) in coming]
        coming = set().union(*(imported_rooms(file.read_text()) for file in files)) - met
    assert "models" in met
    assert not met & {"training", "demonstration", "jobs", "serving", "cli"}


def test_an_import_upwards_would_be_seen():
    assert imported_rooms("def f():\n    from translucid.training.trainer import Trainer") == {"training"}
    assert imported_rooms("from translucid import decoding, __version__\nimport translucid.cli.main") == {
        "decoding",
        "cli",
    }


def test_files_are_short():
    lines = {str(file.relative_to(HOUSE)): len(file.read_text().splitlines()) for file in FILES}
    assert not {file: count for file, count in lines.items() if count > 400}
