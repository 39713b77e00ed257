"""Toolkits with their own commands, on the same text: their configuration, and how to parse their logs."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from common import DATA, WORK, Size

NEVER = 1_000_000


class Settings(NamedTuple):
    """The values from which a tool's configuration is made."""

    run: Path
    """The output folder."""
    size: Size
    interval: int
    """Updates between two log lines."""
    training: dict[str, Any]
    """Settings that extend or override the common ones."""


def configuration(run: Path, settings: dict[str, Any]) -> str:
    """Write a configuration; JSON is YAML."""
    path = run / "configuration.yaml"
    path.write_text(json.dumps(settings, indent=1))
    return str(path)


def command(env: str, program: str) -> str:
    return str(WORK / "envs" / env / "bin" / program)


Started = tuple[list[str], str, Callable[[re.Match[str], float], tuple[int, float]]]
"""A command line, the pattern of its log lines, and from a match and the seconds since the last one to the update's
number and the tokens since the last line."""


LOGGED = r"Step\s+(\d+)/.*bsz:\s*(\d+)/\s*(\d+)/"
"""A log line of OpenNMT-py and of Eole, its successor."""


def data_settings(s: Settings) -> dict[str, Any]:
    """Return the corpus settings of OpenNMT-py and Eole."""
    return {
        "save_data": f"{s.run}/data",
        "overwrite": True,
        "seed": 1,
        "report_every": s.every,
        "data": {"corpus_1": {"path_src": f"{DATA}/train.bpe.en", "path_tgt": f"{DATA}/train.bpe.de"}},
        "share_vocab": True,
        "n_sample": 0,
        "src_vocab": f"{DATA}/pieces.txt",
        "tgt_vocab": f"{DATA}/pieces.txt",
        "src_vocab_size": 10000,
        "tgt_vocab_size": 10000,
    }


def training_settings(s: Settings) -> dict[str, Any]:
    """Return the training settings of both."""
    return {
        "train_steps": NEVER,
        "save_checkpoint_steps": NEVER,
        "valid_steps": NEVER,
        "bucket_size": 29000,
        "num_workers": 0,
        "world_size": 1,
        "gpu_ranks": [],
        "batch_type": "tokens",
        "batch_size": s.size.tokens,
        "batch_size_multiple": 1,
        "accum_count": [1],
        "dropout": [s.size.dropout],
        "attention_dropout": [s.size.dropout],
        "optim": "adam",
        "learning_rate": 1e-3,
        "max_grad_norm": 0,
        "label_smoothing": 0.1,
        "normalization": "tokens",
        "adam_beta2": 0.98,
        **s.training,
    }


def shape_settings(size: Size) -> dict[str, Any]:
    """Return the model settings of both."""
    return {
        "hidden_size": size.width,
        "layers": size.layers,
        "heads": size.heads,
        "transformer_ff": size.feed_forward,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
    }


def tokens_logged(interval: int) -> Callable[[re.Match[str], float], tuple[int, float]]:
    """Read the update's number, and from the tokens of a batch those since the last line."""
    return lambda match, _: (int(match[1]), int(match[3]) * interval)


def opennmt(s: Settings) -> Started:
    settings = {
        **data_settings(s),
        **training_settings(s),
        **shape_settings(s.size),
        "save_model": f"{s.run}/model",
        "model_dtype": "fp32",
        "param_init": 0,
        "param_init_glorot": True,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "word_vec_size": s.size.width,
        "position_encoding": True,
    }
    return [command("opennmt", "onmt_train"), "-config", configuration(s.run, settings)], LOGGED, tokens_logged(s.every)


def eole(s: Settings) -> Started:
    embeddings = {"word_vec_size": s.size.width, "position_encoding_type": "SinusoidalInterleaved"}
    eole_settings = {"model_path": f"{s.run}/model", "compute_dtype": "fp32", "param_init_method": "xavier_uniform"}
    settings = {
        **data_settings(s),
        "training": {**training_settings(s), **eole_settings},
        "model": {"architecture": "transformer", **shape_settings(s.size), "embeddings": embeddings},
    }
    return [command("eole", "eole"), "train", "-config", configuration(s.run, settings)], LOGGED, tokens_logged(s.every)


def joeynmt(s: Settings) -> Started:
    size = s.size

    def side(language: str) -> dict[str, Any]:
        return {
            "lang": language,
            "max_length": 100,
            "min_length": 1,
            "level": "bpe",
            "voc_file": f"{DATA}/pieces.txt",
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": f"{DATA}/bpe.model"},
        }

    def half() -> dict[str, Any]:
        embeddings = {"embedding_dim": size.width, "scale": True, "dropout": size.dropout}
        return {
            "type": "transformer",
            "num_layers": size.layers,
            "num_heads": size.heads,
            "hidden_size": size.width,
            "ff_size": size.feed_forward,
            "dropout": size.dropout,
            "embeddings": embeddings,
            "layer_norm": "post",
        }

    special = {
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_id": 0,
        "pad_id": 1,
        "bos_id": 2,
        "eos_id": 3,
    }
    data = {
        "train": f"{DATA}/train",
        "dev": f"{DATA}/valid",
        "test": f"{DATA}/test",
        "dataset_type": "plain",
        "src": side("en"),
        "trg": side("de"),
        "special_symbols": special,
    }
    training = {
        "optimizer": "adam",
        "adam_betas": [0.9, 0.98],
        "learning_rate": 1e-3,
        "loss": "crossentropy",
        "label_smoothing": 0.1,
        "batch_size": size.tokens,
        "batch_type": "token",
        "normalization": "tokens",
        "scheduling": "warmupinversesquareroot",
        "learning_rate_warmup": 200,
        "learning_rate_min": 0,
        "epochs": 1000,
        "updates": NEVER,
        "validation_freq": NEVER,
        "logging_freq": s.every,
        "overwrite": True,
        "early_stopping_metric": "loss",
        "keep_best_ckpts": 1,
        "shuffle": True,
        **s.training,
    }
    model = {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": half(),
        "decoder": half(),
    }
    testing = {"beam_size": 5, "batch_size": 64, "batch_type": "sentence", "eval_metrics": ["bleu"]}
    settings = {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": f"{s.run}/model",
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": data,
        "testing": testing,
        "training": training,
        "model": model,
    }
    line = [command("joeynmt", "python"), "-m", "joeynmt", "train", configuration(s.run, settings)]
    pattern = r"Step:\s+(\d+).*Tokens per Sec:\s+(\d+)"
    return line, pattern, lambda match, seconds: (int(match[1]), int(match[2]) * seconds)


TOOLS = {"opennmt": opennmt, "eole": eole, "joeynmt": joeynmt}


@contextmanager
def running(line: list[str]) -> Iterator[IO[str]]:
    """Start a tool, provide its log, and finally stop it and its child processes."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
