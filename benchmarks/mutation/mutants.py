"""Small wrong changes of the core, one at a time: the mutants of `cosmic-ray`, except those without behavior."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

from benchmarks.mutation.behavior import behavior
from benchmarks.mutation.selection import changed_lines, room_of

SOURCES = Path(__file__).resolve().parents[2] / "src"
CORE = ("kernels", "attention", "layers", "models", "training", "decoding", "evaluation")
AROUND = ("data", "bitext/documents", "bitext/memory", "terminology", "engines", "interop", "api", "serving")
EXTENSIONS = ("captions", "language")
ROOMS = CORE + AROUND + EXTENSIONS
SETTINGS = {"runs/presets.py", "captions/presets.py", "language/presets.py"}
"""Tables of chosen numbers: a test could only repeat them."""

OPERATORS = """
ReplaceBinaryOperator_Add_Sub ReplaceBinaryOperator_Sub_Add ReplaceBinaryOperator_Mul_Div ReplaceBinaryOperator_Div_Mul
ReplaceBinaryOperator_FloorDiv_Div ReplaceBinaryOperator_Mod_FloorDiv ReplaceBinaryOperator_Pow_Mul
ReplaceBinaryOperator_RShift_LShift ReplaceBinaryOperator_LShift_RShift
ReplaceBinaryOperator_BitOr_BitAnd ReplaceBinaryOperator_BitAnd_BitOr ReplaceBinaryOperator_BitXor_BitAnd
ReplaceComparisonOperator_Eq_NotEq ReplaceComparisonOperator_NotEq_Eq
ReplaceComparisonOperator_Lt_LtE ReplaceComparisonOperator_LtE_Lt ReplaceComparisonOperator_Lt_GtE
ReplaceComparisonOperator_Gt_GtE ReplaceComparisonOperator_GtE_Gt ReplaceComparisonOperator_Gt_LtE
ReplaceComparisonOperator_LtE_Gt ReplaceComparisonOperator_GtE_Lt
ReplaceComparisonOperator_Is_IsNot ReplaceComparisonOperator_IsNot_Is
ReplaceUnaryOperator_USub_UAdd ReplaceUnaryOperator_Delete_Not ReplaceUnaryOperator_Delete_Invert
AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd
ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer RemoveDecorator ZeroIterationForLoop NumberReplacer
""".split()  # noqa: SIM905
"""One or two similar operators of each kind: most others fail with a TypeError, which inflates the score."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    """The path below src/translucid; a path that begins with bitext/ is below src."""
    line: int
    operator: str
    before: str
    """The changed lines, without context."""
    after: str
    source: str
    """The source of the changed file."""

    @property
    def room(self) -> str:
        return room_of(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


def path_of(name: str) -> Path:
    """Return the path of a file or package of ours."""
    return SOURCES / name if name.startswith("bitext") else SOURCES / "translucid" / name


def name_of(file: Path) -> str:
    """Return the name of a file, as in `Mutant.file`."""
    return file.relative_to(SOURCES).as_posix().removeprefix("translucid/")


def sample(count: int, seed: int, rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """Sample the same number of mutants from each package, `count` in total if there are enough."""
    sampled = []
    for i, room in enumerate(rooms):
        draw = random.Random(f"{seed} {room}")
        files = sorted(path_of(room).rglob("*.py"))
        candidates = [candidate for file in files for candidate in _candidates(file)]
        draw.shuffle(candidates)
        size = len(range(i, count, len(rooms)))
        sampled += islice(filter(None, (_mutant(*candidate) for candidate in candidates)), size)
    random.Random(seed).shuffle(sampled)
    return sampled


def sample_since(commit: str, count: int, seed: int) -> list[Mutant]:
    """Sample mutants of the lines that have changed since a commit, in all packages together."""
    lines = {name_of(SOURCES / name): numbers for name, numbers in changed_lines(commit, SOURCES).items()}
    candidates = [candidate for name in sorted(lines) for candidate in _candidates(path_of(name))]
    random.Random(seed).shuffle(candidates)
    mutants = filter(None, (_mutant(*candidate) for candidate in candidates))
    return list(islice((mutant for mutant in mutants if mutant.line in lines[mutant.file]), count))


def _candidates(file: Path) -> Iterator[tuple[Path, str, int]]:
    """Yield file, operator and occurrence of every change, including those that change no behavior."""
    if name_of(file) in SETTINGS:
        return
    nodes = list(ast_nodes(parso.parse(file.read_text(encoding="utf-8"))))
    for name in OPERATORS:
        operator: Operator = get_operator(f"core/{name}")()
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
            yield file, name, occurrence


def _mutant(file: Path, operator: str, occurrence: int) -> Mutant | None:
    """Return the change, or None if it has no behavior to test."""
    source = file.read_text(encoding="utf-8")
    try:
        mutated = mutate_code(source, get_operator(f"core/{operator}")(), occurrence)
        same = behavior(mutated) == behavior(source)
    except (SyntaxError, AttributeError):  # a bare * among parameters; a dotted name of an exception
        return None
    return None if same else _described(name_of(file), operator, source, mutated)


def _described(name: str, operator: str, source: str, mutated: str) -> Mutant:
    changes = list(unified_diff(source.splitlines(), mutated.splitlines(), n=0, lineterm=""))[2:]
    parts = defaultdict(list)
    for line in changes[1:]:
        parts[line[0]] += line[1:].split()
    line = int(changes[0].split()[1].split(",")[0][1:])
    return Mutant(name, line, operator, " ".join(parts["-"]), " ".join(parts["+"]), mutated)
