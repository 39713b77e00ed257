"""Whether a fast engine computes what the model computes.

CTranslate2 implements the equations itself. It would convert a model whose attention somebody has edited without an
error, and translate with the original equation. Therefore the two engines are compared when a model is converted.
Graphs for ONNX Runtime have the operations of the model itself; they are compared too.
"""

from __future__ import annotations

import ast
import hashlib
import math
import operator
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import translucid
from translucid.ground.cache import add_to_cache, find_cached
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer

TOLERANCE = 0.02
"""The largest mean difference per token of a sentence, in nats. Rounding in float32 causes less than 0.001."""
LENGTHS = 1, 3, 6, 12, 24, 48
"""The lengths of the sentences that are compared, in pieces: an edit may change only short or only long ones."""
KEPT = 8
"""The number of fingerprints in the cache."""
_EQUATIONS = "attention", "kernels", "layers", "models"
"""Packages that decide what a model computes."""


Score: TypeAlias = Callable[[Sequence[tuple[list[int], list[int]]]], list[list[float]]]
"""The method `forced` of an engine."""


def largest_difference(score: Score, other: Score, tokenizer: Tokenizer, longest: int) -> float:
    """Return the largest mean difference between the log-probabilities of two engines over the sentences, in nats.

    Both score the same random target pieces for the same random source pieces. This needs no corpus, and reveals an
    edit of any equation.

    Args:
        score: forced decoding by the PyTorch engine.
        other: the same by another engine with the same model, the whole vocabulary and float32 weights.
        tokenizer: the model's tokenizer.
        longest: the number of source tokens that the model accepts, end token included.
    """
    generator = random.Random(1)
    openings = tokenizer.source_opening, tokenizer.target_opening
    pairs = []
    for length in LENGTHS:
        count = min(length, longest - 1 - max(map(len, openings)))
        source = _random_sentence(generator, tokenizer.source_opening, count, tokenizer.source_size)
        target = _random_sentence(generator, tokenizer.target_opening, count, tokenizer.target_size)
        pairs.append((source, target))
    return max(map(_mean_difference, score(pairs), other(pairs)))


def _random_sentence(generator: random.Random, opening: Sequence[int], count: int, size: int) -> list[int]:
    """Return `opening`, followed by `count` random ids below `size` and the end token."""
    ids = [*opening]
    for _ in range(count):
        ids.append(generator.randrange(len(SPECIAL), size))
    return [*ids, SPECIAL.end]


def disagreement(difference: float, engine: str = "CTranslate2") -> str:
    """Explain in one line what a difference above the tolerance means."""
    return (
        f"{engine} does not compute what this model computes (log-probabilities differ by {difference:.2f} "
        "a token): its attention or another equation was edited"
    )


def refuse_disagreement(difference: float, run: Path, engine: str = "CTranslate2") -> None:
    """Check that a difference is within the tolerance.

    Raises:
        UserError: the difference is larger.
    """
    if not difference <= TOLERANCE:  # not `>`: NaN has to be refused too
        fix = 'Use `engine="torch"`, or `export_onnx()`.'
        raise UserError(disagreement(difference, engine), file=run, fix=fix)


@cache
def equations_digest() -> str:
    """Return a fingerprint of the code of all equations: an edit invalidates the models that were converted before.

    Comments and docstrings have no effect. Parsing the files takes a tenth of a second, so the result is cached.
    """
    root = Path(translucid.__file__).parent
    contents = []
    for package in _EQUATIONS:
        contents += [file.read_bytes() for file in sorted((root / package).rglob("*.py"))]
    key = hashlib.sha256(b"".join(contents)).hexdigest()

    def save(folder: Path) -> None:
        folder.mkdir()
        (folder / "digest").write_text(_code_digest(contents))

    with suppress(OSError):  # without space or a home folder, the result is not kept
        cached = find_cached("equations", key) or add_to_cache("equations", key, save, KEPT)
        return (cached / "digest").read_text()
    return _code_digest(contents)


def _code_digest(contents: Sequence[bytes]) -> str:
    """Return a fingerprint of the syntax trees of files without their comments and docstrings."""
    fingerprint = hashlib.sha256()
    for content in contents:
        tree = ast.parse(content)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                node.body = [statement for statement in node.body if not _is_docstring(statement)]
        fingerprint.update(ast.dump(tree).encode())
    return fingerprint.hexdigest()


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _mean_difference(log_probs: list[float], other_log_probs: list[float]) -> float:
    """Return the mean absolute difference of the log-probabilities of a sentence."""
    if not all(map(math.isfinite, log_probs)):  # the weights are damaged, which the search reports by itself
        return 0.0
    return sum(map(abs, map(operator.sub, log_probs, other_log_probs))) / len(log_probs)
