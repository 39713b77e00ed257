"""What a process has loaded from which `forked.py` forks commands: all that is slow to import, and no threads."""

import ctranslate2  # noqa: F401
import sacrebleu.metrics  # noqa: F401
import torch._dynamo
import torch.utils.tensorboard  # noqa: F401

import translucid.api.captioner
import translucid.api.translator  # noqa: F401
import translucid.jobs.processes
import translucid.training.experiment
import translucid.training.post_training
import translucid.training.sharding
from translucid.cli.main import tree

tree()
