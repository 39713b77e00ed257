"""The options of the training."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup

MANY = 1_000_000_000
"""A bound for values without a natural one, small enough for exact arithmetic."""


NOT_COMPILED = "sharded", "adapter_rank", "distillation_weight", "guided_alignment"
"""Settings with which nothing is compiled."""


class TrainingOptions(OptionGroup):
    """The length, speed and regularization of the training."""

    seed: int = Field(1, ge=0, lt=1 << 63)
    """Determines the first weights, the order of the data and all dropout."""
    begin_from: str | None = None
    """The run whose tokenizer and weights initialize this one; `train --init-from` sets it."""
    init_encoder: str | None = None
    """The run of a language model that initializes a translator's encoder; `train --init-from encoder=RUN` sets it."""
    init_decoder: str | None = None
    """The run of a language model that initializes a translator's decoder; `train --init-from decoder=RUN` sets it."""
    elmo: str | None = None
    """The run of lm-bilstm whose representations a translator's encoder reads; `train --elmo` sets it."""
    batch_tokens: int = Field(4096, ge=1, le=1 << 20)
    """Tokens in a batch, on its longer side, padding included. Some presets have more on a GPU (docs/gpu.md)."""
    window: int = Field(70, ge=1, le=1 << 16)
    """For language models: the average number of tokens of a row of text in a batch, over which gradients are
    propagated back. A batch has batch_tokens / window rows."""
    accumulate: int = Field(1, ge=1, le=MANY)
    """Batches whose gradients are added up for one update."""
    max_steps: int | None = Field(None, ge=1, le=MANY)
    """Stop after this many updates."""
    max_epochs: int | None = Field(None, ge=1, le=MANY)
    """Stop after this many passes over the data."""
    max_minutes: float | None = Field(None, gt=0, le=MANY)
    """Stop after this many minutes of training and validation, including the time before a run was resumed."""
    patience: int | None = Field(10, ge=1, le=MANY)
    """Stop after this many validations without a better score, such as BLEU."""

    optimizer: Literal["adam", "nadam", "muon"] = "adam"
    """Adam; Adam with Nesterov momentum; or Muon (Jordan et al. 2024), which orthogonalizes the updates of the matrices
    within the layers, with Adam for the other weights."""
    learning_rate: float = Field(0.001, gt=0, le=1000)
    """The peak, reached at the end of the warm-up."""
    warmup: int = Field(1000, ge=1, le=MANY)
    """Updates in which the learning rate rises to its peak; it then falls with the square root of the update."""
    cooldown: float = Field(0.2, ge=0, le=1)
    """The last share of max_steps, max_epochs or max_minutes, in which the learning rate also falls linearly to 0."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability mass taken from the right token and spread over the vocabulary."""
    schedule: Literal["inverse-root", "slanted"] = "inverse-root"
    """How the learning rate falls after its peak; slanted is a triangle over the whole training (Howard and Ruder
    2018): up in the first tenth, then down to a 32nd, regardless of warmup and cooldown."""
    layer_decay: float = Field(1.0, ge=1, le=100)
    """The factor by which the learning rate of a layer is lower than that of the layer above; 2.6 is good for
    fine-tuning (discriminative fine-tuning, Howard and Ruder 2018)."""
    unfreeze: bool = False
    """Train only the top layer in the first epoch, and one more layer in each following epoch (gradual unfreezing,
    Howard and Ruder 2018)."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that are not trained: encoder, decoder, embeddings, output, or a part of them, such as encoder.0."""
    l2_sp: float = Field(0.0, ge=0, le=MANY)
    """For fine-tuning: L in the penalty L/2 |w - w0|^2 that is added to the loss of a token, where w0 are the weights
    at the beginning (Barone et al. 2017)."""
    distillation_weight: float = Field(0.0, ge=0, le=1)
    """For translators: the share of the loss that is the cross-entropy with the predictions of another model instead of
    the right token: those of the first model in fine-tuning (Khayrallah et al. 2018), or those of `teachers`."""
    teachers: list[str] = Field(default_factory=list)
    """Runs with one vocabulary, which becomes that of a new run. Their mean predictions are those of
    distillation_weight (word-level knowledge distillation, Kim and Rush 2016)."""
    soft_targets: int = Field(0, ge=0, le=1 << 10)
    """Compute once, before training, the probabilities of this many most probable tokens of `teachers` at each target
    position, instead of those of all tokens in each update: faster, and nearly the same (Tan et al. 2019). 16 is usual;
    0 computes all in each update."""
    max_regression: float = Field(1.0, ge=0, le=100)
    """BLEU that a translator may lose on data.valid_general; weights that have lost more are not kept as the best."""
    adapter_rank: int = Field(0, ge=0, le=1 << 12)
    """For fine-tuning Transformers: freeze the matrices and learn a difference of this rank for each of them (LoRA, Hu
    et al. 2021), which is also written to adapter.safetensors."""
    adapter_scale: float = Field(2.0, gt=0, le=MANY)
    """The factor of the difference, alpha / rank in the paper."""
    adapter_parts: list[Literal["attention", "feed-forward", "embeddings"]] = Field(
        ["attention", "feed-forward", "embeddings"], min_length=1
    )
    """The parts with adapted matrices; an SSRU belongs to the attention, the output projection to the embeddings."""
    quantized_weights: bool = False
    """Compute and validate with matrices rounded to 8 bits, as exports with int8 store them, and update and keep the
    unrounded ones (quantization-aware training, Jacob et al. 2018): for models that int8 makes worse."""
    self_critical: float = Field(0.0, ge=0, le=1)
    """For captioners: the last share of the training, in which the model learns from sampled captions, rewarded by
    their CIDEr-D to the reference captions (Rennie et al. 2017), instead of from each reference token."""
    guided_alignment: float = Field(0.0, ge=0, le=MANY)
    """For translators with attention: the weight of the cross-entropy between word links and one head of the
    cross-attention, from which word alignments are then read (Garg et al. 2019); 0.1 is usual (docs/training.md). The
    links are those of data.train_alignments, or of statistics."""
    guided_layer: int | None = Field(None, ge=0, le=255)
    """The decoder layer of that head; the last one if not given, and then set when a training begins."""
    prefixes: float = Field(0.0, ge=0, lt=1)
    """For translators: the share of the training pairs that are cut in each epoch to a source prefix and the target
    prefix that is aligned to it, for live translation (docs/live.md). The links are those of data.train_alignments,
    or of statistics."""
    clip_norm: float = Field(1.0, gt=0, le=MANY)
    """The largest norm of the gradient; longer gradients are scaled down to it."""
    averaging: float = Field(0.999, ge=0, lt=1)
    """The decay of the running average of the weights, which is validated and kept; 0 keeps the last weights."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """The precision of factors in large matrix products and in attention; weights and updates stay in float32.
    auto is bfloat16 on GPUs that have instructions for it, and on CPUs if a product in it is clearly faster, which is
    measured at the start; it also lets GPUs round the factors of other products to TF32. A resumed run keeps it.
    float32 is the same on all devices."""

    packed: bool = False
    """For Transformers that translate, on a GPU in bfloat16: put all sources of a batch into one row and all targets
    into another, without padding between them. All batches then have one shape, and pairs of any lengths are in one."""
    captured: bool = False
    """For `packed` on a CUDA GPU: record the kernels of an update once, as a CUDA graph, and then launch all of them in
    one call. Where a setting makes this impossible, a line at the start names it."""
    compile: bool | Literal["auto"] = False
    """For Transformers, mainly on a GPU: compile the forward pass and its gradients into few kernels (`torch.compile`).
    Batches are padded to a few lengths, and the first batch of each length takes many seconds. auto measures the first
    batches with and without, for a minute at most, before the training begins; a resumed run keeps its choice."""
    sharded: bool = False
    """Distribute all weights, gradients and moments over several processes (FSDP2), for models that do not fit on one
    device; slower for others."""
    deterministic: bool = False
    """On GPUs, use only operations that add in a fixed order, so that the same seed gives the same bits; slower."""

    validate_every: int = Field(500, ge=1, le=MANY)
    """Updates between two validations."""
    validate_sentences: int = Field(500, ge=1, le=MANY)
    """Validation sentences that are translated for BLEU, in each direction of a multilingual model. They are spread
    evenly over the validation data; the loss is measured on all of it. At the end of a training, all sentences (at most
    5,000) decide between the best weights so far and the last ones."""
    select_by: Literal["mean", "worst"] = "mean"
    """For multilingual models: whether the mean score of all directions or that of the worst one selects the best
    weights and ends the training."""
    save_minutes: float = Field(5, gt=0, le=MANY)
    """Minutes between two checkpoints, in addition to those at each validation."""
    log_every: int = Field(20, ge=1, le=MANY)
    """Updates between two rows in metrics.jsonl and in the trackers."""
    trackers: list[Literal["tensorboard", "wandb", "mlflow", "trackio"]] = Field(["tensorboard"])
    """Experiment trackers that get the figures of metrics.jsonl: TensorBoard, Weights & Biases, MLflow, Trackio
    (docs/evaluation.md); [] is none."""

    @property
    def needs_word_links(self) -> bool:
        """Whether the words of training pairs are linked."""
        return bool(self.guided_alignment or self.prefixes)

    @property
    def other_runs(self) -> list[Path]:
        """The runs that the weights come from or that teach the model."""
        runs = (self.begin_from, self.init_encoder, self.init_decoder, self.elmo, *self.teachers)
        return [Path(run) for run in runs if run]

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingOptions:
        if self.sharded and self.optimizer == "muon":
            raise ValueError("training.sharded holds parts of matrices, and optimizer=muon needs whole ones")
        if self.sharded and self.guided_alignment:
            raise ValueError("training.sharded and training.guided_alignment do not go together")
        for name in NOT_COMPILED:
            if self.compile is True and getattr(self, name):
                raise ValueError(f"training.compile and training.{name} do not go together")
        if self.captured and not self.packed:
            raise ValueError("training.captured is for batches of one shape: set training.packed=true")
        for name in ("l2_sp", "distillation_weight", "adapter_rank"):
            has_model = self.begin_from or (name == "distillation_weight" and self.teachers)
            if getattr(self, name) and not has_model:
                raise ValueError(f"training.{name} is for fine-tuning: name the initial run with `training.begin_from`")
            if getattr(self, name) and self.sharded:
                raise ValueError(f"training.{name} needs whole matrices, and training.sharded holds parts of them")
        if self.teachers and self.begin_from:
            raise ValueError("training.teachers and training.begin_from both say which vocabulary: leave one out")
        if self.soft_targets and not (self.teachers and self.distillation_weight):
            raise ValueError(
                "training.soft_targets are those of training.teachers: name them and training.distillation_weight"
            )
        for name in ("sharded", "adapter_rank"):
            if self.quantized_weights and getattr(self, name):
                raise ValueError(
                    f"training.quantized_weights rounds whole matrices, and training.{name} has parts of them"
                )
        if self.l2_sp and self.adapter_rank:
            raise ValueError("training.l2_sp holds weights that training.adapter_rank leaves as they are anyway")
        return self
