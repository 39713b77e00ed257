"""Tensor files load completely or are refused."""

import os
import tracemalloc

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.runs.tensor_file import load_arrays, load_tensors, read_header, save_tensors

TENSORS = {
    "float": torch.randn(3, 4),
    "half": torch.randn(5).bfloat16(),
    "bytes": torch.arange(7, dtype=torch.uint8),
    "number": torch.tensor(3.5),
    "none": torch.empty(0, 2),
    "turned": torch.randn(3, 4).t(),
}


@pytest.fixture
def file(tmp_path):
    save_tensors(tmp_path / "x.safetensors", TENSORS, {"step": 7, "text": "ñ"})
    return tmp_path / "x.safetensors"


def test_round_trip(file):
    tensors, facts = load_tensors(file)
    assert facts == {"step": 7, "text": "ñ"}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype
    assert [item.name for item in file.parent.iterdir()] == ["x.safetensors"]


def test_the_content_is_that_of_safetensors(file):
    from safetensors.torch import load, save

    content, expected = file.read_bytes(), save({name: tensor.contiguous() for name, tensor in TENSORS.items()})
    assert {name: tensor.tolist() for name, tensor in load(content).items()} == {
        name: tensor.tolist() for name, tensor in TENSORS.items()
    }
    size = sum(tensor.nbytes for tensor in TENSORS.values())
    assert content[-size:] == expected[-size:]
    assert (len(content) - size) % 8 == 0


def test_a_checkpoint_is_written_without_a_copy_of_it_in_memory(tmp_path):
    tensors = {name: torch.ones(1 << 19) for name in "abcd"}  # 8 MiB
    tracemalloc.start()
    try:
        save_tensors(tmp_path / "x.safetensors", tensors, {})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_weights_with_former_names_have_their_current_ones(tmp_path):
    file = tmp_path / "x.safetensors"
    weight, moment = torch.randn(2, 3), torch.randn(2)
    save_tensors(file, {"decoder.said.weight": weight, "weights.decoder.seen.weight": moment}, {})
    tensors, _ = load_tensors(file)
    assert torch.equal(tensors.pop("decoder.hidden_projection.weight"), weight)
    assert torch.equal(tensors.pop("weights.decoder.context_projection.weight"), moment)
    assert not tensors
    arrays, _ = load_arrays(file)
    assert (arrays["decoder.hidden_projection.weight"] == weight.numpy()).all()
    shapes, _ = read_header(file)
    assert shapes == {
        "decoder.hidden_projection.weight": (2, 3),
        "weights.decoder.context_projection.weight": (2,),
    }


def test_any_byte_that_is_missing_or_wrong_is_noticed(file):
    content = file.read_bytes()
    for position in range(0, len(content), 13):
        for damaged in (
            content[:position],
            content[:position] + bytes([content[position] ^ 8]) + content[position + 1 :],
        ):
            file.write_bytes(damaged)
            try:
                tensors, facts = load_tensors(file)
            except UserError as error:
                assert "x.safetensors" in str(error)
                assert "\n" not in str(error)
            else:  # a change without effect, such as another space in the header
                assert facts == {"step": 7, "text": "ñ"}
                assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_missing_and_foreign_files(tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(UserError, match="missing"):
        load_tensors(tmp_path / "no.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign.safetensors")
    with pytest.raises(UserError, match="not written by translucid"):
        load_tensors(tmp_path / "foreign.safetensors")


def test_a_file_full_of_holes_is_refused_by_its_size(file):
    os.truncate(file, 1 << 42)
    for read in (load_tensors, read_header):
        with pytest.raises(UserError, match=r"has 4,398,046,511,104 bytes, more than this machine's memory"):
            read(file)


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(file, monkeypatch):
    before = file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        save_tensors(file, {"float": torch.zeros(9)}, {})
    assert file.read_bytes() == before
    assert [item.name for item in file.parent.iterdir()] == ["x.safetensors"]
