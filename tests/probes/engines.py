"""Translation engines that need a separate Python environment, whose interpreter an environment variable names.

    python -m venv marian && marian/bin/pip install pymarian
    PYMARIAN=marian/bin/python python -m pytest tests/interop

Likewise FXTRANSLATE (`fxtranslate`) and BERGAMOT (`bergamot`, for Python 3.8 to 3.10).
"""

import json
import os
import subprocess
from typing import Any

import pytest


def run_engine(name: str, script: str, *arguments: object) -> Any:
    """Run a script with the Python of an engine; return the JSON that it prints last."""
    python = os.environ.get(name.upper())
    if not python:
        pytest.skip(f"NO {name.upper()}: names the Python that has the package {name}")
    command = [python, "-c", script, *map(str, arguments)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    return json.loads(printed.splitlines()[-1])
