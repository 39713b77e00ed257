"""All cells of the notebooks run, on small models that the notebooks share."""

import os
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from translucid.lessons.lessons import LESSONS

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
LESSON = {file: file.name.partition("-")[0] for file in NOTEBOOKS}
SHOWN = {
    "2": ["decoder.0.cross"],
    "3": ["decoder.1.cross", "<b>"],
    "4": ["✓"],
    "6": ["<b>"],
    "8": ["<summary>", "<table>"],
    "9": ["✓", "<th>layer</th>"],
    "12": ["encoder states"],
}
"""Texts that the HTML outputs of a notebook must contain, by notebook."""
ONE, TWO = ("1", "3", "7", "8", "9", "12", "13", "15"), ("5", "6", "10", "11", "14", "16")
FORGET = """\
for _name in {*globals()} - {"In", "Out", "exit", "quit", "get_ipython", "open"}:
    if not _name.startswith("_"):
        del globals()[_name]
"""
"""A cell that deletes the names of the previous notebook. `%reset -f` would take a quarter of the time of all cells."""
PICTURES = {**dict.fromkeys(ONE, 1), **dict.fromkeys(TWO, 2), "classroom.ipynb": 2}
"""The number of figures that each notebook shows."""


def test_each_lesson_has_a_notebook():
    numbers = sorted(int(name) for name in LESSON.values() if name.isdigit())
    assert numbers == list(range(1, len(LESSONS) + 1))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_are_stored_without_outputs(file):
    """Notebooks are stored without outputs, as stored ones would come from models that readers do not have."""
    for cell in nbformat.read(file, as_version=4).cells:
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)


@pytest.fixture(scope="module")
def kernel(lesson_runs, tmp_path_factory):
    """A kernel that all notebooks share; each of them first deletes the names of the previous one."""
    manager = KernelManager(kernel_name="python3")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # the kernel starts in another folder
    given = {
        "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in paths if path),
        "TRANSLUCID_LEARN_RUNS": str(lesson_runs),
        "OMP_NUM_THREADS": "1",
    }
    manager.start_kernel(env={**os.environ, **given}, cwd=str(tmp_path_factory.mktemp("notebooks")))
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_all_cells_of_a_notebook_run(file, kernel):
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("EACH = 20", "EACH = 2").replace("generate(60,", "generate(6,")
        cell.source = cell.source.replace(', ("table", "book"), ("shirt", "hat"), ("library", "car")]', "]")
        cell.source = cell.source.replace("STEPS = 400", "STEPS = 2").replace("generate(4000,", "generate(200,")
        cell.source = cell.source.replace("generate(1000,", "generate(100,").replace(
            "generate(20_000,", "generate(200,"
        )
        cell.source = cell.source.replace("MINUTES = 5", "MINUTES = 0.01")
    notebook.cells.insert(0, new_code_cell(FORGET))
    NotebookClient(notebook, km=kernel, timeout=100).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    html = "".join(output.data.get("text/html", "") for output in outputs if "data" in output)
    assert all(text in html for text in SHOWN.get(LESSON[file], []))
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == PICTURES.get(LESSON[file], 0)
    html = html.replace("http://www.w3.org/2000/svg", "")  # an XML namespace, which is never fetched
    assert "http://" not in html and "https://" not in html
    assert not [output for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]
