"""An untrained run with a dictionary of its neurons."""

import shutil

import pytest
import torch

from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator
from translucid.circuits.dictionary import Dictionary, DictionaryConfiguration, sublayers_of
from translucid.circuits.transcoder import Transcoder

K = 4


@pytest.fixture
def run(untrained, tmp_path):  # noqa: F811
    """Return the folder of an untrained run with a dictionary, which a test may change."""
    folder = tmp_path / "run"
    shutil.copytree(untrained("transformer"), folder)
    write_dictionary(folder)
    return folder


def write_dictionary(folder):
    """Write a dictionary of its neurons into a run."""
    translator = Translator.load(folder, "cpu", "torch")
    torch.manual_seed(2)
    transcoders = {}
    for name, sublayer in sublayers_of(translator.model).items():
        transcoders[name] = Transcoder.of_neurons(sublayer, 64, K).requires_grad_(False)
    digest = translator.loaded.folder.model_digest()
    Dictionary(transcoders, DictionaryConfiguration(digest, 4, K, 0, 1, ("text.tsv",), 0)).save(folder)


@pytest.fixture
def dictionary(run):
    """Return the dictionary of the run."""
    return Dictionary.load(run)
