"""What a process has loaded from which `forked.py` forks commands: all that is slow to import, and no threads."""

import ctranslate2  # noqa: F401
import sacrebleu.metrics  # noqa: F401
import torch._dynamo
import torch.utils.tensorboard  # noqa: F401

from translucid.cli.main import tree

tree()
