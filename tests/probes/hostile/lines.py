"""Lines of any bytes through `translucid translate`: as many out as in, exit code 0, or 2 with one clear line."""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.probes.hostile.small_run import make_run
from tests.probes.hostile.tally import Tally
from tests.probes.hostile.texts import ODD
from translucid.cli.main import run
from translucid.ground.errors import UserError

WORDS = [
    *(text.encode("utf-8", "surrogatepass") for text in ODD),
    *(
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\xff\xfe",
        b"\xc3",
        b"\x00",
        b"soccer ",
        b"x" * 5000,
        b"a b " * 500,
        "我。".encode() * 200,
    ),
]
OPTIONS = [[], ["--lines", "whole"], ["--format", "jsonl"], ["--alignments"], ["--nbest", "2"], ["--beam", "1"]]


def fuzz(count: int, seed: int) -> Tally:
    """Translate `count` inputs."""
    tally = Tally("lines")
    with tempfile.TemporaryDirectory() as name:
        make_run(Path(name) / "run")
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            words = [_word(chance) for _ in range(chance.randrange(12))]
            options = ["--engine", chance.choice(["torch", "ctranslate2"]), *chance.choice(OPTIONS)]
            content = b"".join(words)
            tally.attempt(
                (seed, number, options, content),
                lambda content=content, options=options: _translate(Path(name) / "run", content, options),  # type: ignore[misc]
                seconds=60,
            )
    return tally


def _word(chance: random.Random) -> bytes:
    return chance.choice(WORDS) if chance.random() < 0.8 else chance.randbytes(6)


def _translate(folder: Path, content: bytes, options: list[str]) -> None:
    code, out, stderr = _called(["translate", str(folder), *options], content)
    assert code in (0, 2), f"exit code {code}: {stderr}"
    assert "Traceback" not in stderr
    lines = out.split(b"\n")
    assert lines.pop() == b""
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert len(lines) == len(expected), f"{len(expected)} lines in, {len(lines)} out, exit code {code}: {stderr}"
    if "jsonl" in options:
        assert all("translation" in json.loads(line) for line in lines)
    out.decode()
    if code:
        raise UserError(stderr.rpartition("error: ")[2].strip())


def _called(arguments: list[str], stdin: bytes) -> tuple[int, bytes, str]:
    """Run a command in this process."""
    before = sys.stdin
    out, stderr = io.BytesIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        stream = io.TextIOWrapper(out, encoding="utf-8", newline="\n", write_through=True)
        with redirect_stdout(stream), redirect_stderr(stderr):
            code = run(arguments)
        stream.flush()
        return code, out.getvalue(), stderr.getvalue()
    finally:
        sys.stdin = before
