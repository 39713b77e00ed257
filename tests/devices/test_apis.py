"""Functions of the Python API compute on an emulated GPU what they compute on the CPU."""

import shutil
from types import SimpleNamespace

import pytest
import torch

from tests.devices.emulated import Emulation
from tests.devices.shrunk import SENTENCES, SHORT, build_case
from translucid.api.translator import Translator
from translucid.attention.masks import padding_mask
from translucid.captions.dataset import ImageDataset
from translucid.captions.pointing import _table
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.maps import AlignmentLayer
from translucid.decoding.search import TorchEngine
from translucid.decoding.shortlist import Shortlist
from translucid.engines.onnx.convert import recordable
from translucid.engines.run_files import load_alignment_layer, save_alignment_layer
from translucid.engines.tuning import learn_links
from translucid.inspection.alignment import AlignmentExample, learn_alignment
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.inspected import plain
from translucid.interop.huggingface_export import export_huggingface
from translucid.language.generator import Generator
from translucid.language.transformer import _window_mask
from translucid.runs.run_folder import RunFolder
from translucid.serving.routes.inspection import _continuations

TEXT = "I like the beach."


def search_with_shortlist(device, run):
    model, shortlist = build_case("tiny").model.to(device).eval(), Shortlist(list(range(12)), {5: [20, 21], 8: [30]})
    results = TorchEngine(model, shortlist=shortlist).decode(SearchRequest(SENTENCES, DecodingOptions(beam=3, **SHORT)))
    return [torch.tensor([*best.tokens, best.score]) for best, *_ in results]


def learned_alignment(device, run):
    pairs = [AlignmentExample(source, [7, *source], torch.eye(len(source) + 1, len(source))) for source in SENTENCES]
    layer = learn_alignment(build_case("tiny").model.to(device).eval(), pairs, device)
    return [tensor.cpu() for tensor in layer.state_dict().values()]


def aligned_by_a_layer(device, run):
    folder, translator = RunFolder(run), Translator.load(run, str(device), "torch")
    layer = load_alignment_layer(folder, (None, None), translator.model)
    pairs = [EncodedPair([5, 6, 3], [7, 3])]
    (inspected,) = forced_decoding(translator.model, translator.tokenizer, pairs, device, layer=layer)
    return [inspected.links]


def equation(device, run):
    result = Translator.load(run, str(device), "torch").translate(TEXT).equation()
    return [tensor.cpu() for tensor in (result.query, result.key, result.value, result.scores, result.weights)]


def confidence_features(device, run):
    translator = Translator.load(run, str(device), "torch")
    parts = translator.translate(TEXT).parts
    (features,) = translator.quality.observed(parts, ["attention", "dropout"], 3)
    assert features.dropout_log_probs.shape == (3,)
    return [torch.from_numpy(features.attention), torch.from_numpy(features.token_log_probs)]


def served_continuations(device, run):
    served = SimpleNamespace(translator=Translator.load(run, str(device), "torch"))
    return [torch.tensor([row["probability"] for row in _continuations(served, TEXT, [9])])]


def log_probabilities(pieces):
    return torch.tensor([piece.log_probability for piece in pieces])


def score_of_a_text(device, run):
    generator = Generator.load(run, str(device))
    return list(map(log_probabilities, [generator.score(TEXT).pieces, *generator.considered([5, 6], 0, 3)]))


def exports(device, run):
    model = Translator.load(run, str(device), "torch").model
    out, folder = run.parent / f"huggingface-{device.type}", RunFolder(run)
    export_huggingface(model, Tokenizer.load(folder.path), folder.configuration(), out)
    return [*recordable(model).parameters()]


def linked_pieces(device, run):
    pairs = [(source, [7, *source]) for source in SENTENCES]
    links = learn_links(build_case("tiny").model.to(device).eval(), pairs, device)
    return [torch.from_numpy(values) for values in (links.keys, links.weights)]


def masks(device, run):
    ids = torch.tensor([[5, 6, 1, 0]], device=device)
    return [padding_mask(ids, {0, 1}).cpu(), _window_mask(2, 3, device).allowed.cpu()]


def states_of_whole_texts(device, run):
    model, generator = build_case("lm-bilstm").model.to(device).eval(), torch.Generator().manual_seed(1)
    embedded = torch.rand(2, 4, 16, generator=generator).to(device)
    mask = torch.tensor([[True] * 4, [True] * 3 + [False]], device=device)
    return [states.detach().cpu() for states in model.read_both_directions(embedded, mask)]


def fingerprint_of_a_frozen_network(device, run):
    encoder = SimpleNamespace(frozen=True, stride=8, size=32)
    files = SimpleNamespace(digest=str)
    dataset = SimpleNamespace(shape=SimpleNamespace(image_encoder=encoder), names=[], files=files)
    fingerprint = ImageDataset._identity(dataset, build_case("caption-soft").model.to(device))
    return [torch.tensor(list(fingerprint.encode()))]


def values_for_a_reader(device, run):
    weights = torch.arange(6, device=device).view(2, 3) / 7
    return [torch.tensor(plain(weights)), torch.from_numpy(_table(weights))]


FUNCTIONS = [
    *(search_with_shortlist, learned_alignment, aligned_by_a_layer, equation, confidence_features),
    *(served_continuations, score_of_a_text, exports, linked_pieces, masks, states_of_whole_texts),
    *(fingerprint_of_a_frozen_network, values_for_a_reader),
]


@pytest.fixture
def run_of(small_run, language_run, tmp_path):
    """Return a copy of the run folder that a function needs."""

    def folder(function):
        run = tmp_path / "run"
        shutil.copytree(language_run("lm-lstm") if function is score_of_a_text else small_run, run)
        if function is aligned_by_a_layer:
            torch.manual_seed(1)
            save_alignment_layer(RunFolder(run), AlignmentLayer(16, 16), None)
        return run

    return folder


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_computes_on_a_gpu_what_it_computes_on_the_cpu(function, run_of, monkeypatch):
    monkeypatch.setattr("translucid.inspection.alignment.UPDATES", 2)
    run = run_of(function)
    with Emulation("cuda") as emulation:
        references = function(torch.device("cpu"), run)
        assert not emulation.kernels
        results = function(emulation.device, run)
    for actual, reference in zip(results, references, strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-3, atol=1e-5)
