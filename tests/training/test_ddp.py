"""Training in several processes: results equal those of one process, and the processes end together."""

import json
import re
import signal
import time

import pytest
import torch
import torch.distributed as dist

from tests.probes.forked import forked_group, script_group
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.ground.errors import UserError
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.hardware.ddp import PREPARATION_TIMEOUT, UPDATE_TIMEOUT, Workers

SETTINGS = {
    "model": {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
    "data": {"tokenizer": {"vocabulary": 200}},
    "training": {
        "batch_tokens": 100,
        "accumulate": 2,
        "validate_every": 6,
        "validate_sentences": 5,
        "log_every": 1,
        "max_steps": 12,
        # Small enough that rounding is not amplified, and large enough that a wrong gradient shows in the loss.
        "warmup": 200,
        "learning_rate": 0.002,
    },
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 100), ("valid", 7)):
        lines = [f"{p.source}\t{p.target}\n" for p in generate(count, split=split, max_words=8)]
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "settings.yaml").write_text(json.dumps(SETTINGS))
    return folder


def arguments(corpus, out, *options, resume=False):
    files = ["--train", str(corpus / "train.tsv"), "--valid", str(corpus / "valid.tsv"), "--out", str(out)]
    return ["train", *(["--resume"] if resume else [str(corpus / "settings.yaml")]), *files, *options]


def start(corpus, out, *options, resume=False, count=2):
    """Start a training in several processes, with several buckets of gradients."""
    small_buckets = {"translucid.training.hardware.ddp.BUCKET": 4096}
    return forked_group(*arguments(corpus, out, *options, resume=resume), count=count, replaced=small_buckets)


def finish(process):
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    return output


def losses(out):
    return [row["loss"] for row in RunFolder(out).metrics()]


def losses_by_step(out):
    return {(row["kind"], row["step"]): row["loss"] for row in RunFolder(out).metrics() if "loss" in row}


def alignment_losses(out):
    return [row["alignment_loss"] for row in RunFolder(out).metrics() if row["kind"] == "validation"]


@pytest.fixture(scope="module")
def single_process_run(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "alone"
    assert run(arguments(corpus, out)) == 0
    return out


def test_two_processes_learn_what_one_learns(corpus, single_process_run, tmp_path):
    output = finish(start(corpus, tmp_path / "two"))
    assert "2 processes" in " ".join(output.split())
    assert output.count("validation at step 12") == 1
    assert losses(tmp_path / "two") == pytest.approx(losses(single_process_run), rel=1e-4)
    ours, theirs = (load_tensors(run / "model.safetensors")[0] for run in (tmp_path / "two", single_process_run))
    for name, tensor in theirs.items():
        torch.testing.assert_close(ours[name], tensor, rtol=1e-2, atol=1e-3)


def test_two_processes_learn_word_links_as_one_does(corpus, tmp_path):
    guided = ["--set", "training.guided_alignment=2", "--set", "data.subword_dropout=0.1"]
    finish(start(corpus, tmp_path / "two", *guided))
    assert run(arguments(corpus, tmp_path / "one", *guided)) == 0
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    two, one = map(alignment_losses, (tmp_path / "two", tmp_path / "one"))
    assert two == pytest.approx(one, rel=1e-4) and two[1] < two[0]


def test_two_processes_fine_tune_as_one_does(corpus, single_process_run, tmp_path):
    """With frozen parts, low-rank adapters and distillation from the initial model."""
    options = [
        "--init-from",
        str(single_process_run),
        "--valid-general",
        str(corpus / "train.tsv"),
        "--set",
        "training.adapter_rank=2",
    ]
    options += ["training.freeze=[encoder]", "training.distillation_weight=0.3", "training.learning_rate=0.01"]
    finish(start(corpus, tmp_path / "two", *options, "training.max_steps=5"))
    finish(start(corpus, tmp_path / "two", "--set", "training.max_steps=12", resume=True))
    assert run(arguments(corpus, tmp_path / "one", *options)) == 0
    ours, theirs = losses_by_step(tmp_path / "two"), losses_by_step(tmp_path / "one")
    # The first part ends with both processes translating all validation sentences, with the first and last weights.
    (selection,) = [row for row in RunFolder(tmp_path / "two").metrics() if row["kind"] == "selection"]
    assert (selection["step"], selection["best_step"], selection["sentences"]) == (5, 0, 7)
    shared = sorted(ours.keys() & theirs.keys())
    assert len(shared) == 15
    assert [ours[key] for key in shared] == pytest.approx([theirs[key] for key in shared], rel=1e-3)
    adapters = [load_tensors(tmp_path / name / "adapter.safetensors")[0] for name in ("two", "one")]
    assert adapters[0].keys() == adapters[1].keys()
    assert all(name.startswith(("decoder.", "source_embedding.")) for name in adapters[0])


def test_sharded_processes_learn_what_one_learns(corpus, single_process_run, tmp_path):
    sharded = ["--set", "training.sharded=true"]
    finish(start(corpus, tmp_path / "run", *sharded, "--set", "training.max_steps=4", count=3))
    finish(start(corpus, tmp_path / "run", "--set", "training.max_steps=12", resume=True))
    assert RunFolder(tmp_path / "run").configuration().training.sharded
    training = [row["loss"] for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"]
    assert training == pytest.approx(
        [r["loss"] for r in RunFolder(single_process_run).metrics() if r["kind"] == "training"], rel=1e-3
    )
    validated = {
        row["step"]: row["loss"] for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "validation"
    }
    for row in RunFolder(single_process_run).metrics():
        if row["kind"] == "validation":
            assert validated[row["step"]] == pytest.approx(row["loss"], rel=1e-3)


def test_sharded_weights_skip_an_update_without_reading_whether_it_is_finite(tmp_path):
    """Only GPUs need this way of skipping, but PyTorch computes the same on a CPU."""
    script = tmp_path / "skipped.py"
    script.write_text(
        "import torch\n"
        "from translucid.runs.configuration import resolve\n"
        "from translucid.models.build import build_model\n"
        "from translucid.training.optimizer import Optimizer\n"
        "from translucid.training.hardware.sharding import ShardedWeights\n"
        "from translucid.training.hardware.ddp import Workers\n"
        "device = torch.device('cpu')\n"
        "def report(name):\n"
        "    torch.manual_seed(1)\n"
        "    model = build_model(resolve(preset='demo').model, 100, 100)\n"
        "    weights = ShardedWeights(model, device, workers)\n"
        "    options = resolve(preset='demo', assignments=['training.optimizer=' + name]).training\n"
        "    optimizer = Optimizer(options, model, weights.parameters, bfloat16=False)\n"
        "    for factor in (1.0, torch.inf, 1.0):\n"
        "        for parameter in weights.parameters:\n"
        "            parameter.grad = torch.ones_like(parameter) * factor\n"
        "        norm = weights.clip_grad_norm(1.0)\n"
        "        before = [parameter.to_local().clone() for parameter in weights.parameters]\n"
        "        optimizer.step(0.01, norm.isfinite())\n"
        "        pairs = zip(before, weights.parameters, strict=True)\n"
        "        unmoved = {bool((old == new.to_local()).all()) for old, new in pairs if old.numel()}\n"
        "        finite = all(t.isfinite().all() for state in optimizer.moments().values() for t in state.values())\n"
        "        print(name, 'unmoved', *unmoved, bool(finite))\n"
        "with Workers.joined(device) as workers:\n"
        "    report('adam')\n"
        "    report('nadam')\n"
    )
    output, _ = script_group(script).communicate()
    for name in ("adam", "nadam"):
        moved, unmoved = f"{name} unmoved False True", f"{name} unmoved True True"
        lines = [line for line in output.splitlines() if line.startswith(f"{name} unmoved")]
        assert sorted(lines) == sorted(2 * [moved, unmoved, moved])


def test_a_sharded_process_stores_only_its_part(tmp_path):
    script = tmp_path / "held.py"
    script.write_text(
        "import torch\n"
        "from translucid.runs.configuration import resolve\n"
        "from translucid.models.build import build_model\n"
        "from translucid.training.hardware.sharding import ShardedWeights\n"
        "from translucid.training.hardware.ddp import PREPARATION_TIMEOUT, UPDATE_TIMEOUT, Workers\n"
        "device = torch.device('cpu')\n"
        "with Workers.joined(device) as workers:\n"
        "    model = build_model(resolve(preset='demo').model, 100, 100)\n"
        "    whole = sum(p.numel() for p in model.parameters())\n"
        "    weights = ShardedWeights(model, device, workers)\n"
        "    held = sum(p.to_local().numel() for p in weights.parameters)\n"
        "    average = sum(a.numel() for a in weights.ema)\n"
        "    complete = sum(p.numel() for p in weights.complete.parameters())\n"
        "    saved = sum(t.numel() for t in weights.tensors().values())\n"
        "    print('held', whole, held, average, complete, saved if workers.leads else -saved)\n"
    )
    output, _ = script_group(script).communicate()
    counts = [list(map(int, line.split()[1:])) for line in output.splitlines() if line.startswith("held")]
    assert len(counts) == 2, output
    for total, local, average, complete, _ in counts:
        assert local == average == pytest.approx(total / 2, rel=0.02)
        assert complete == 0
    # Only the first process gathers the tensors to save.
    assert sorted(saved for *_, saved in counts) == [0, 2 * counts[0][0]]


def test_another_number_of_processes_goes_on(corpus, single_process_run, tmp_path):
    finish(start(corpus, tmp_path / "run", "--set", "training.max_steps=4"))
    assert run(arguments(corpus, tmp_path / "run", "--set", "training.max_steps=12", resume=True)) == 0
    resumed_losses = [row["loss"] for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"]
    expected = [row["loss"] for row in RunFolder(single_process_run).metrics() if row["kind"] == "training"]
    assert len(resumed_losses) == 12
    assert resumed_losses == pytest.approx(expected, rel=1e-3)


def test_a_dead_process_ends_the_others_and_the_training_resumes(corpus, tmp_path):
    """This does not use torchrun, which would itself end the other process."""
    out = tmp_path / "run"
    job = start(corpus, out, "--set", "training.max_steps=100000", "training.save_minutes=0.001")
    first, second = job.processes
    end = time.monotonic() + 120
    while not (out / "state" / "checkpoint.safetensors").exists() and time.monotonic() < end:
        time.sleep(0.02)
    second.kill()
    output, _ = first.communicate(timeout=120)
    assert second.wait(timeout=120) == -signal.SIGKILL
    assert first.returncode == 2 and "another training process has died" in " ".join(output.split())
    step = RunFolder(out).load_state()[1]["place"]["step"]
    assert run(arguments(corpus, out, "--set", f"training.max_steps={step + 3}", resume=True)) == 0


def test_ctrl_c_in_one_process_ends_both(corpus, tmp_path):
    out = tmp_path / "run"
    job = start(corpus, out, "--set", "training.max_steps=100000")
    end = time.monotonic() + 120
    while not RunFolder(out).metrics() and time.monotonic() < end:
        time.sleep(0.02)
    first, second = job.processes
    second.send_signal(signal.SIGINT)
    assert [process.wait(timeout=120) for process in (first, second)] == [130, 130]
    trained = [row["step"] for row in RunFolder(out).metrics() if row["kind"] == "training"]
    assert RunFolder(out).load_state()[1]["place"]["step"] == trained[-1]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("[gloo] connection closed by peer"), (UserError, "another training process has died")),
        (
            torch.distributed.DistBackendError("NCCL error\nDuplicate GPU detected: rank 1 and rank 0\n"),
            (UserError, "the training processes cannot communicate (Duplicate GPU detected: rank 1 and rank 0)"),
        ),
        (RuntimeError("shapes do not fit"), (RuntimeError, "shapes do not fit")),
    ],
)
def test_errors_between_processes_are_told_apart(error, expected, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("translucid.training.hardware.ddp.rendezvous", lambda *rest, **more: iter([(None, 1, 2)]))
    for name, result in {"init_process_group": None, "destroy_process_group": None, "get_rank": 1}.items():
        monkeypatch.setattr(f"torch.distributed.{name}", lambda *rest, result=result, **more: result)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)

    def meet_and_fail():
        with Workers.joined(torch.device("cpu")) as workers:
            assert (workers.rank, workers.count, workers.leads) == (1, 2, False)
            raise error

    with pytest.raises(expected[0], match=re.escape(expected[1])):
        meet_and_fail()


@pytest.fixture
def process_group_calls(monkeypatch):
    """Replace the process group of process 1 of 2, and record the calls to PyTorch."""
    calls = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("translucid.training.hardware.ddp.rendezvous", lambda *rest, **more: iter([(None, 1, 2)]))
    monkeypatch.setattr("torch.cuda.set_device", lambda device: calls.update(set_device=device))
    monkeypatch.setattr(
        "torch.distributed.init_process_group", lambda backend, **more: calls.update(backend=backend, **more)
    )
    monkeypatch.setattr(
        "translucid.training.hardware.ddp._set_pg_timeout",
        lambda timeout: calls.setdefault("timeouts", []).append(timeout),
    )
    for name, result in {"destroy_process_group": None, "barrier": None, "get_rank": 1, "get_world_size": 2}.items():
        monkeypatch.setattr(f"torch.distributed.{name}", lambda *rest, result=result, **more: result)
    return calls


def test_each_process_communicates_through_its_own_gpu(process_group_calls, monkeypatch):
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: True)
    gpu = torch.device("cuda", 1)
    with Workers.joined(gpu) as workers:
        assert (
            process_group_calls["backend"],
            process_group_calls["set_device"],
            process_group_calls["device_id"],
        ) == ("nccl", gpu, gpu)
        assert (workers.device, workers.note) == (gpu, "")


def test_without_nccl_gloo_is_used_and_reported(process_group_calls, monkeypatch):
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: False)
    with Workers.joined(torch.device("cuda", 1)) as workers:
        assert (process_group_calls["backend"], process_group_calls["device_id"]) == ("gloo", None)
        assert workers.device == torch.device("cpu") and "has no NCCL" in workers.note


def test_an_apple_gpu_is_for_one_process(process_group_calls):
    with (
        pytest.raises(UserError, match="several processes can't train on one Apple GPU"),
        Workers.joined(torch.device("mps")),
    ):
        pass
    assert not process_group_calls


def test_preparing_may_take_longer_than_an_update(process_group_calls):
    with Workers.joined(torch.device("cpu")) as workers:
        assert process_group_calls["timeout"] == PREPARATION_TIMEOUT
        with workers.updating():
            assert process_group_calls["timeouts"] == [UPDATE_TIMEOUT]
    assert process_group_calls["timeouts"] == [UPDATE_TIMEOUT, PREPARATION_TIMEOUT]
    assert UPDATE_TIMEOUT < PREPARATION_TIMEOUT


def test_timeouts_are_passed_to_pytorch(tmp_path):
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=PREPARATION_TIMEOUT)
    try:
        gloo = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
        assert gloo.options._timeout == PREPARATION_TIMEOUT
        with Workers(0, 2).updating():
            assert gloo.options._timeout == UPDATE_TIMEOUT
    finally:
        dist.destroy_process_group()


def test_shared_items_are_interleaved_again():
    single = Workers()
    assert single.share([1, 2, 3]) == single.interleave([1, 2, 3]) == [1, 2, 3]
    assert single.sum(1.5, 2) == [1.5, 2]
    workers = [Workers(rank, 3) for rank in range(3)]
    items = list(range(8))
    assert sorted(item for worker in workers for item in worker.share(items)) == items
    shares = [worker.share(items) for worker in workers]
    first = workers[0]
    first.gather = lambda thing: shares  # type: ignore[method-assign]
    assert first.interleave(shares[0]) == items
