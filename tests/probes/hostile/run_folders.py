"""Run folders with one file damaged, replaced, or crafted."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml

from tests.probes.hostile.damage import damaged
from tests.probes.hostile.settings import KEYS, ODD
from tests.probes.hostile.small_run import make_run
from tests.probes.hostile.tally import Tally
from translucid.api.translator import Translator
from translucid.data.seen_sentences import SEEN, SeenSentences, SeenSentencesBuilder, hashes_of
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import read_settings
from translucid.runs.tensor_file import load_tensors, save_tensors

FILES = [
    *(
        "config.yaml",
        "config.yaml",
        "config.yaml",
        "model.safetensors",
        "model.safetensors",
        "tokenizer.model",
        "tuned.json",
    ),
    *("shortlist.tsv", SEEN, "metrics.jsonl", "state/checkpoint.safetensors", "state/previous.safetensors"),
]
TEXTS = ["I like soccer", "", "x " * 30]
SECRET = "TOP SECRET"


def fuzz(count: int, seed: int) -> Tally:
    """Open and use `count` such folders."""
    tally = Tally("run folders")
    with tempfile.TemporaryDirectory() as name:
        intact = Path(name) / "whole"
        secret = Path(name) / "secret"
        secret.write_text(SECRET)
        make_run(intact)
        index = SeenSentencesBuilder()
        index.add(hashes_of(TEXTS), hashes_of(TEXTS[::-1]))
        index.write(intact, "text")
        run = Path(name) / "run"
        shutil.copytree(intact, run)
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            file = chance.choice(FILES)
            change = chance.choice(WAYS.get(file, [_damage]))
            change(run / file, chance, secret)
            tally.attempt(f"seed {seed}, number {number}: {change.__name__}({file})", lambda: _use(run))
            if secret.read_text() != SECRET:
                tally.fail(number, "something outside was written")
                secret.write_text(SECRET)
            for changed in {file, "metrics.jsonl"}:
                _mend(run / changed, intact / changed)
    return tally


def _use(run: Path) -> None:
    """Use a run folder as the commands do."""
    folder = RunFolder(run)
    translations = Translator.load(run, "cpu").translate(TEXTS)
    assert [translation.source for translation in translations] == TEXTS
    assert all("\n" not in translation.text and translation.text.encode() is not None for translation in translations)
    folder.metrics()
    folder.load_state()
    if seen := SeenSentences.of_run(run):
        seen.look_up([(text, text) for text in TEXTS])
    with folder.locked():
        folder.add_metrics({"kind": "training", "step": 1})
        folder.forget_metrics_after(3)


def _mend(file: Path, intact: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)
    shutil.copyfile(intact, file)


def _damage(file: Path, chance: random.Random, secret: Path) -> None:
    file.write_bytes(damaged(file.read_bytes(), chance))


def _exchange(file: Path, chance: random.Random, secret: Path) -> None:
    """Replace a file by nothing, a folder, a pipe, or a link to a secret, itself or a device."""
    file.unlink()
    what = chance.randrange(8)
    if what == 0:
        file.mkdir()
    elif what == 1:
        os.mkfifo(file)
    elif what == 2:
        file.symlink_to(secret)
    elif what == 3:
        file.symlink_to(file.name)
    elif what == 4:
        file.symlink_to(chance.choice(["/dev/zero", "/dev/stdin", "/etc/passwd", "/", "/nonexistent"]))
    elif what == 5:
        file.touch()
    elif what == 6:
        with file.open("wb") as stream:
            stream.truncate(chance.choice([1 << 40, 1 << 30, 100]))


def _header(file: Path, chance: random.Random, secret: Path) -> None:
    """Write absurd names, shapes and offsets into a readable header."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size]
    for _ in range(chance.choice([1, 2, 5])):
        positions = [i for i, byte in enumerate(header) if 48 <= byte < 58]
        position = chance.choice(positions)
        number = chance.choice([b"0", b"9999999999", b"-1", b"18446744073709551615", b"1e9", b"16", b"00"])
        header = header[:position] + number + header[position + 1 :]
    kind = chance.choice([b"F32", b"F64", b"BF16", b"I8", b"BOOL", b"F8_E4M3", b"C64", b"F4", b"X"])
    header = header.replace(b"F32", kind, chance.choice([0, 1, 100]))
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])


def _crafted(file: Path, chance: random.Random, secret: Path) -> None:
    """Write other tensors or facts with a valid checksum."""
    tensors, facts = load_tensors(file)
    name = chance.choice(sorted(tensors))
    wild: Callable[[torch.Tensor], torch.Tensor] = chance.choice(
        [
            lambda t: t * torch.nan,
            lambda t: t * torch.inf,
            lambda t: t * 1e30,
            lambda t: t.flatten(),
            lambda t: t[:0],
            lambda t: t.double(),
            lambda t: t.to(torch.int8),
            lambda t: t.bool(),
            lambda t: t.to(torch.complex64),
            lambda t: t.to(torch.float8_e4m3fn),
            lambda t: torch.tensor(1.0),
        ]
    )
    tensors[name] = wild(tensors[name]).contiguous()
    odd: list[Any] = [
        facts,
        facts,
        {},
        [],
        "x",
        None,
        {"tokenizer": 1},
        {"tokenizer": "x" * 64},
        {"place": [], "corpus": {}},
    ]
    save_tensors(file, tensors, chance.choice(odd))


def _reconfigured(file: Path, chance: random.Random, secret: Path) -> None:
    """Change one value of the configuration."""
    settings = read_settings(file)
    group = settings
    *parents, last = chance.choice(KEYS).split(".")
    for parent in parents:
        inner = group.get(parent)
        group[parent] = group = dict(inner) if isinstance(inner, dict) else {}
    group[last] = "PLACE"
    text = chance.choice([*ODD, "2", "3", "17", "64", "256", "16384", "false", "true", "0.1", "null"])
    file.write_text(yaml.safe_dump(settings).replace("PLACE", text), encoding="utf-8", errors="surrogatepass")


WAYS: dict[str, list[Callable[[Path, random.Random, Path], None]]] = {
    "config.yaml": [_damage, _exchange, _reconfigured, _reconfigured, _reconfigured],
    "model.safetensors": [_damage, _exchange, _header, _crafted],
    "tokenizer.model": [_damage, _exchange],
    "tuned.json": [_damage, _exchange],
    "shortlist.tsv": [_damage, _exchange],
    SEEN: [_damage, _exchange],
    "metrics.jsonl": [_damage, _exchange],
    "state/checkpoint.safetensors": [_damage, _exchange, _header, _crafted],
    "state/previous.safetensors": [_damage, _exchange, _header, _crafted],
}
