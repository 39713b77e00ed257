"""Copies to a GPU use pinned memory; tensors that are on a device already are neither pinned nor copied."""

import torch

from translucid.kernels.transfer import pinned, upload


def test_only_what_is_on_the_host_is_pinned(monkeypatch):
    pinned_devices = []

    def pin(self):
        pinned_devices.append(self.device.type)
        return self

    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.Tensor.pin_memory", pin)
    host, on_device = torch.ones(2), torch.ones(2, device="meta")
    assert pinned(host) is host and pinned(on_device) is on_device
    assert pinned_devices == ["cpu"]


def test_what_is_on_a_device_stays_as_it_is():
    on_device = torch.ones(2, device="meta")
    assert upload(on_device, "meta") is on_device
