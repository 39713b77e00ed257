"""Copies to a GPU use pinned memory; tensors that are on a device already are neither pinned nor copied."""

import torch

from translucid.kernels.upload import pinned, upload


def test_only_host_tensors_are_pinned(monkeypatch):
    pinned_devices = []

    def pin(self):
        pinned_devices.append(self.device.type)
        return self

    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.Tensor.pin_memory", pin)
    host, on_device = torch.ones(2), torch.ones(2, device="meta")
    assert pinned(host) is host and pinned(on_device) is on_device
    assert pinned_devices == ["cpu"]


def test_tensors_on_a_device_are_unchanged():
    on_device = torch.ones(2, device="meta")
    assert upload(on_device, "meta") is on_device
