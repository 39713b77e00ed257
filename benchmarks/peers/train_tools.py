"""Tools with a command of their own, measured by what they log.

    python train_tools.py opennmt|eole|joeynmt SIZE SECONDS

Each is started on the same text with its own trainer and stopped after so many seconds of logged updates. The first
lines are warm-up. Tokens are those that the tool counts (target tokens with the end token); the clock is ours.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from common import DATA, SIZES, WORK, peak_mib, report

NAME, SIZE_NAME, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
SIZE = SIZES[SIZE_NAME]
RUN = WORK / "tools" / f"{NAME}-{SIZE_NAME}"
EVERY = 5 if SIZE_NAME == "tiny" else 2
"""Updates between two lines of the log."""
NEVER = 1_000_000


def configuration(settings: dict[str, Any]) -> str:
    """Write a configuration; JSON is YAML."""
    path = RUN / "configuration.yaml"
    path.write_text(json.dumps(settings, indent=1))
    return str(path)


def command(env: str, program: str) -> str:
    return str(WORK / "envs" / env / "bin" / program)


Started = tuple[list[str], str, Callable[[re.Match[str], float], tuple[int, float]]]
"""A command line, the pattern of its log lines, and from a match and the seconds since the last one to the update's
number and the tokens since the last line."""


LOGGED = r"Step\s+(\d+)/.*bsz:\s*(\d+)/\s*(\d+)/"
"""A line of OpenNMT-py's log, and of Eole's, which comes of it."""


def data_settings() -> dict[str, Any]:
    """What OpenNMT-py and Eole are told of the corpus."""
    return {
        "save_data": f"{RUN}/data",
        "overwrite": True,
        "seed": 1,
        "report_every": EVERY,
        "data": {"corpus_1": {"path_src": f"{DATA}/train.bpe.en", "path_tgt": f"{DATA}/train.bpe.de"}},
        "share_vocab": True,
        "n_sample": 0,
        "src_vocab": f"{DATA}/pieces.txt",
        "tgt_vocab": f"{DATA}/pieces.txt",
        "src_vocab_size": 10000,
        "tgt_vocab_size": 10000,
    }


def training_settings() -> dict[str, Any]:
    """What both are told of the training."""
    return {
        "train_steps": NEVER,
        "save_checkpoint_steps": NEVER,
        "valid_steps": NEVER,
        "bucket_size": 29000,
        "num_workers": 0,
        "world_size": 1,
        "gpu_ranks": [],
        "batch_type": "tokens",
        "batch_size": SIZE.tokens,
        "batch_size_multiple": 1,
        "accum_count": [1],
        "dropout": [SIZE.dropout],
        "attention_dropout": [SIZE.dropout],
        "optim": "adam",
        "learning_rate": 1e-3,
        "max_grad_norm": 0,
        "label_smoothing": 0.1,
        "normalization": "tokens",
        "adam_beta2": 0.98,
    }


def shape_settings() -> dict[str, Any]:
    """What both are told of the model."""
    return {
        "hidden_size": SIZE.width,
        "layers": SIZE.layers,
        "heads": SIZE.heads,
        "transformer_ff": SIZE.feed_forward,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
    }


def tokens_logged(found: re.Match[str], _: float) -> tuple[int, float]:
    """Read the update's number, and from the tokens of a batch those since the last line."""
    return int(found[1]), int(found[3]) * EVERY


def opennmt() -> Started:
    settings = {
        **data_settings(),
        **training_settings(),
        **shape_settings(),
        "save_model": f"{RUN}/model",
        "model_dtype": "fp32",
        "param_init": 0,
        "param_init_glorot": True,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "word_vec_size": SIZE.width,
        "position_encoding": True,
    }
    return [command("opennmt", "onmt_train"), "-config", configuration(settings)], LOGGED, tokens_logged


def eole() -> Started:
    embeddings = {"word_vec_size": SIZE.width, "position_encoding_type": "SinusoidalInterleaved"}
    own = {"model_path": f"{RUN}/model", "compute_dtype": "fp32", "param_init_method": "xavier_uniform"}
    settings = {
        **data_settings(),
        "training": {**training_settings(), **own},
        "model": {"architecture": "transformer", **shape_settings(), "embeddings": embeddings},
    }
    return [command("eole", "eole"), "train", "-config", configuration(settings)], LOGGED, tokens_logged


def joeynmt() -> Started:
    s = SIZE

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
        embeddings = {"embedding_dim": s.width, "scale": True, "dropout": s.dropout}
        return {
            "type": "transformer",
            "num_layers": s.layers,
            "num_heads": s.heads,
            "hidden_size": s.width,
            "ff_size": s.feed_forward,
            "dropout": s.dropout,
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
        "batch_size": s.tokens,
        "batch_type": "token",
        "normalization": "tokens",
        "scheduling": "warmupinversesquareroot",
        "learning_rate_warmup": 200,
        "learning_rate_min": 0,
        "epochs": 1000,
        "updates": NEVER,
        "validation_freq": NEVER,
        "logging_freq": EVERY,
        "overwrite": True,
        "early_stopping_metric": "loss",
        "keep_best_ckpts": 1,
        "shuffle": True,
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
        "model_dir": f"{RUN}/model",
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": data,
        "testing": testing,
        "training": training,
        "model": model,
    }
    line = [command("joeynmt", "python"), "-m", "joeynmt", "train", configuration(settings)]
    pattern = r"Step:\s+(\d+).*Tokens per Sec:\s+(\d+)"
    return line, pattern, lambda found, seconds: (int(found[1]), int(found[2]) * seconds)


def main() -> None:
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    line, pattern, tokens_of = {"opennmt": opennmt, "eole": eole, "joeynmt": joeynmt}[NAME]()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    seen: list[tuple[float, int, float]] = []
    with (RUN / "log.txt").open("w") as log:
        for text in process.stdout:
            log.write(text)
            now = time.perf_counter()
            if found := re.search(pattern, text):
                seen.append((now, *tokens_of(found, now - seen[-1][0] if seen else 0.0)))
            if len(seen) > 4 and now - seen[1][0] > SECONDS:
                break
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()
    if len(seen) < 4:
        sys.exit(f"{NAME} logged {len(seen)} lines; see {RUN}/log.txt")
    spent = seen[-1][0] - seen[1][0]
    tokens = sum(count for _, _, count in seen[2:])
    report(tokens_per_second=tokens / spent, updates=seen[-1][1] - seen[1][1], peak_mib=peak_mib(children=True))


if __name__ == "__main__":
    main()
