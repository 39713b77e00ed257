"""The imports of the process from which `forked.py` forks commands: all slow ones, none that starts threads."""

# ruff: noqa: F401

import gc
import os

import ctranslate2
import sacrebleu.metrics
import torch._dynamo
import torch.distributed.run
import torch.utils.tensorboard

import translucid.api.translator
import translucid.captions.captioner
import translucid.jobs.processes
import translucid.training.experiment
import translucid.training.hardware.sharding
import translucid.training.post_training
from translucid.cli.main import tree

tree()
os.fsync = lambda descriptor: None  # as in tests/conftest.py
gc.freeze()  # so that the collector does not write to memory that forked processes share
