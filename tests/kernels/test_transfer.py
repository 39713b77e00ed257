"""Copies to a GPU are made from pinned memory, and what is on the GPU already is neither pinned nor copied."""

import torch

from translucid.kernels.transfer import pinned, upload


def test_only_what_is_on_the_host_is_pinned(monkeypatch):
    asked = []

    def pin(self):
        asked.append(self.device.type)
        return self

    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.Tensor.pin_memory", pin)
    host, elsewhere = torch.ones(2), torch.ones(2, device="meta")
    assert pinned(host) is host and pinned(elsewhere) is elsewhere
    assert asked == ["cpu"]


def test_what_is_on_a_device_stays_as_it_is():
    there = torch.ones(2, device="meta")
    assert upload(there, "meta") is there
