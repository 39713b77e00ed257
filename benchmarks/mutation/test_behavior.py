"""What `make mutation` counts as a change of behavior."""

import pytest

from benchmarks.mutation.behavior import behavior

SOURCE = '''
class Search(Options):
    """How to search."""

    beam: int = Field(5, ge=1)

    @abstractmethod
    def cut(self, x: Tensor | None, *, most: int = 3) -> float | None:
        if x is None:
            raise ValueError(f"{most + 1} is too many")
        for row in x:
            most -= 1
        return most

    def __repr__(self) -> str:
        return "search" + 1


@dataclass(frozen=True)
class State:
    rows: int
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Field(5, ge=1)", "Field(6, ge=0)"),
        ("Tensor | None", "Tensor & None"),
        ("float | None", "float & None"),
        ("most + 1}", "most - 1}"),
        ('"search" + 1', '"search" - 1'),
        ("    @abstractmethod\n", ""),
        ("frozen=True", "frozen=False"),
        ("self, x: Tensor | None, *, most", "self, x: Tensor | None, /, most"),
    ],
)
def test_no_change_of_behavior(old, new):
    assert behavior(SOURCE) == behavior(SOURCE.replace(old, new)) and old in SOURCE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("most: int = 3", "most: int = 4"),
        ("x is None:", "x is not None:"),
        ("most -= 1", "most -= 2"),
        ("in x:", "in []:"),
        ("@dataclass(frozen=True)\n", ""),
        ("return most", "return -most"),
    ],
)
def test_a_change_of_behavior(old, new):
    assert behavior(SOURCE) != behavior(SOURCE.replace(old, new)) and old in SOURCE
