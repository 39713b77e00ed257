"""Attention scores in users' files are executed only if the user names them, and are recorded in the run."""

import pytest
import torch

from translucid.attention.scores import Dot
from translucid.cli.main import run
from translucid.ground.errors import UserError
from translucid.models.user_code import VARIABLE, allow_code, load_score

from ..conftest import SHAPE

COSINE = """
import torch.nn.functional as F

from translucid.attention import Score


class Cosine(Score):
    def __init__(self, width):
        super().__init__()

    def keys(self, memory):
        return F.normalize(memory, dim=-1)

    def forward(self, query, key):
        return 8 * F.normalize(query, dim=-1) @ key.transpose(-2, -1)


class NoScore:
    pass
"""
SETTINGS = [setting for setting in SHAPE if "model." not in setting]


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # so that it is restored
    monkeypatch.delenv(VARIABLE)


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    file = tmp_path_factory.mktemp("code") / "my_scores.py"
    file.write_text(COSINE)
    return file


@pytest.fixture(scope="module")
def cosine_run(scores, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "cosine"
    files = [
        "--train",
        corpus / "train.tsv",
        "--valid",
        corpus / "test.tsv",
        "--out",
        folder,
        "--model",
        "rnn-luong-dot",
    ]
    model = ["model.attention=my_scores.py:Cosine", "model.width=16", "training.max_steps=4"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(VARIABLE, "")
        patched.delenv(VARIABLE)
        code = run(
            [str(argument) for argument in ["--code", scores, "train", *files, "--no-tune", "--set", *SETTINGS, *model]]
        )
    assert code == 0
    return folder


def test_a_run_names_its_score_and_executes_it_only_if_it_is_named_again(cosine_run, scores, capfd):
    arguments = ["translate", str(cosine_run), "I like soccer"]
    assert run(arguments) == 2
    stderr = capfd.readouterr().err
    assert stderr.count("\n") == 1 and "translucid --code my_scores.py" in stderr
    assert run(["--code", str(scores), *arguments]) == 0
    captured = capfd.readouterr()
    assert captured.out.count("\n") == 1 and "another version" not in captured.err
    assert run(["--code", str(scores), "look", str(cosine_run), "I like soccer"]) == 0


def test_another_version_of_the_file_is_a_warning(cosine_run, scores, tmp_path, capfd):
    changed = tmp_path / "my_scores.py"
    changed.write_text(COSINE.replace("8 *", "9 *"))
    assert run(["--code", str(changed), "translate", str(cosine_run), "I like soccer"]) == 0
    assert "was trained with another version of my_scores.py:Cosine" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("reference", "content", "message"),
    [
        ("my.py:Missing", COSINE, "has no class Missing"),
        ("my.py:NoScore", COSINE, "has no class NoScore"),
        ("my.py:Cosine", "import nothing_of_this_name", "can't be executed (ModuleNotFoundError"),
        ("my.py:Cosine", COSINE.replace("self, width", "self"), "fails"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(reference, content, message, tmp_path):
    file = tmp_path / "my.py"
    file.write_text(content)
    allow_code(file)
    with pytest.raises(UserError) as error:
        load_score(reference, 8)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there_cannot_be_allowed(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        allow_code(tmp_path / "missing.py")


def test_a_score_of_ones_own_that_equals_ours_gives_the_same_numbers(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from translucid.attention import Dot\n\n\nclass Mine(Dot):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
    )
    allow_code(file)
    query, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    mine, ours = load_score("mine.py:Mine", 4), Dot()
    assert torch.equal(mine(query, mine.keys(memory)), ours(query, ours.keys(memory)))
