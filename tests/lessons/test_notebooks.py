"""The notebooks run from the first cell to the last, each in a kernel of its own, with small models that all share."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from translucid.lessons.lessons import LESSONS

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
SHOWN = {
    "2": ["decoder.0.cross"],
    "3": ["decoder.1.cross", "<b>"],
    "4": ["✓"],
    "6": ["<b>"],
    "8": ["<summary>", "<table>"],
}
"""What stands in the HTML of results that show themselves, by notebook."""
PICTURES = {"1": 1, "3": 1, "5": 2, "6": 2, "7": 1, "8": 1}
"""How many figures each shows."""


def test_there_is_one_for_each_lesson():
    assert [file.name.partition("-")[0] for file in NOTEBOOKS] == [str(i + 1) for i in range(len(LESSONS))]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_no_output_is_kept(file):
    """Outputs are made by whoever runs them; kept ones would say what models said that nobody has."""
    for cell in nbformat.read(file, as_version=4).cells:
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file, lesson_runs, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSLUCID_LEARN_RUNS", str(lesson_runs))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # the kernel starts in another folder
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(Path(path).resolve()) for path in paths if path))
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("EACH = 20", "EACH = 2").replace("generate(60,", "generate(6,")
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=100, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    html = "".join(output.data.get("text/html", "") for output in outputs if "data" in output)
    assert all(text in html for text in SHOWN.get(file.name[0], []))
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == PICTURES.get(file.name[0], 0)
    assert "http://" not in html and "https://" not in html
    assert not [output for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]
