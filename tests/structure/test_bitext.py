"""The package bitext works where there is no Translucid, and loads little."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bitext

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "bitext.md").read_text(encoding="utf-8")
WITHOUT_TRANSLUCID = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("translucid", "torch"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
"""
EVERY_MODULE = """
import importlib, pkgutil, bitext
for module in pkgutil.walk_packages(bitext.__path__, "bitext."):
    importlib.import_module(module.name)
for name in bitext.__all__:
    getattr(bitext, name)
"""
OUTPUTS = [
    "line 1 'house' []\nline 2 'red house' ['<b>', '</b>', '<i>', '</i>']\n<p>casa</p>\n<p><b>red</b> <i>house</i></p>",
    "83 Guarda la página antes de salir",
    "WEBVTT\n\n1\n00:00:00.500 --> 00:00:02.100\nLa casa está cerca del mar.",
]


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout


def test_every_module_and_every_public_name_is_there_without_translucid():
    assert run(WITHOUT_TRANSLUCID + EVERY_MODULE) == ""


@pytest.mark.parametrize("number", range(len(OUTPUTS)))
def test_the_examples_of_the_page_work_without_translucid(number):
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == len(OUTPUTS)
    assert run(WITHOUT_TRANSLUCID + examples[number]).strip() == OUTPUTS[number]


def test_the_page_lists_every_public_name():
    table = PAGE.split("## ")[0]
    assert set(re.findall(r"`(\w+)`", table)) - {"bitext"} == {*bitext.__all__}


def test_importing_it_loads_no_reader_and_no_memory():
    code = "import sys, bitext; print([name for name in sys.modules if name.startswith('bitext.')])"
    assert run(code).strip() == "['bitext.public_names']"
