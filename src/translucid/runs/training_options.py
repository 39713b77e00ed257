"""What can be set about training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup

MANY = 1_000_000_000
"""More than anybody wants of anything, and little enough to count with."""


class TrainingOptions(OptionGroup):
    """How long, how fast and how carefully to train."""

    seed: int = Field(1, ge=0, lt=1 << 63)
    """Decides the first weights, the order of the data and every dropout."""
    begin_from: str | None = None
    """A run whose tokenizer and weights are begun with; `train --init-from` sets it."""
    init_encoder: str | None = None
    """A run of a language model with which a translator's encoder begins; `train --init-encoder` sets it."""
    init_decoder: str | None = None
    """The same of the decoder; `train --init-decoder` sets it."""
    elmo: str | None = None
    """A run of lm-bilstm that tells a translator's encoder of each source token; `train --elmo` sets it."""
    batch_tokens: int = Field(4096, ge=1, le=1 << 20)
    """Tokens in a batch, on its longer side, padding included."""
    window: int = Field(70, ge=1, le=1 << 16)
    """Of language models: tokens that a row of running text is read on by, and that gradients go back over, on
    average. A batch has batch_tokens / window rows."""
    accumulate: int = Field(1, ge=1, le=MANY)
    """Batches whose gradients are added up for one update."""
    max_steps: int | None = Field(None, ge=1, le=MANY)
    """Stop after so many updates."""
    max_epochs: int | None = Field(None, ge=1, le=MANY)
    """Stop after so many passes over the data."""
    max_minutes: float | None = Field(None, gt=0, le=MANY)
    """Stop after so many minutes of training and validating, earlier runs of the same folder included."""
    patience: int | None = Field(10, ge=1, le=MANY)
    """Stop after so many validations without a better score, such as BLEU."""

    optimizer: Literal["adam", "nadam", "muon"] = "adam"
    """Adam; Adam with Nesterov's momentum; or Muon (Jordan et al. 2024), which moves the matrices within the layers in
    directions made orthogonal, and Adam for the rest."""
    learning_rate: float = Field(0.001, gt=0, le=1000)
    """The peak, reached at the end of the warm-up."""
    warmup: int = Field(1000, ge=1, le=MANY)
    """Updates over which the learning rate rises to its peak; it then falls with the square root of the update."""
    cooldown: float = Field(0.2, ge=0, le=1)
    """The last share of max_steps, max_epochs or max_minutes, over which the learning rate also falls linearly to 0."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability mass taken from the right token and spread over the vocabulary."""
    schedule: Literal["inverse-root", "slanted"] = "inverse-root"
    """How the learning rate falls after its peak; slanted is a triangle over the whole training (Howard and Ruder
    2018): up over the first tenth, then down to a 32nd, whatever warmup and cooldown say."""
    layer_decay: float = Field(1.0, ge=1, le=100)
    """By what the learning rate of each layer is divided, compared to the layer above it; 2.6 for models that have
    learned something before (discriminative fine-tuning, Howard and Ruder 2018)."""
    unfreeze: bool = False
    """Move only the uppermost layer in the first epoch, and one more from the top in each epoch after it (gradual
    unfreezing, Howard and Ruder 2018)."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that stay as they are: encoder, decoder, embeddings, output, or a part of them, such as encoder.0."""
    l2_sp: float = Field(0.0, ge=0, le=MANY)
    """Of what begins as another run: L of the L/2 |w - w0|^2 that is added to the loss of a token, w0 the weights that
    it began with (Barone et al. 2017)."""
    distillation_weight: float = Field(0.0, ge=0, le=1)
    """Of translators that begin as another run: the share of the loss that is the cross-entropy to what the first model
    would say next, instead of to the right token (Khayrallah et al. 2018)."""
    max_regression: float = Field(1.0, ge=0, le=100)
    """BLEU that a translator may lose on data.valid_general; weights that have lost more are not the best ones."""
    adapter_rank: int = Field(0, ge=0, le=1 << 12)
    """Of Transformers that begin as another run: leave its matrices as they are and learn for each a difference of this
    rank (LoRA, Hu et al. 2021), kept in adapter.safetensors as well."""
    adapter_scale: float = Field(2.0, gt=0, le=MANY)
    """By what the difference is multiplied; alpha / rank in the paper's words."""
    adapter_parts: list[Literal["attention", "feed-forward", "embeddings"]] = Field(
        ["attention", "feed-forward", "embeddings"], min_length=1
    )
    """Where those matrices are; the output projection is among the embeddings."""
    self_critical: float = Field(0.0, ge=0, le=1)
    """Of captioners: the last share of the training, in which the model learns from captions that it draws itself, by
    how much each has of what people say of the image (CIDEr-D; Rennie et al. 2017), instead of theirs word by word."""
    clip_norm: float = Field(1.0, gt=0, le=MANY)
    """Gradients longer than this are shortened to it."""
    averaging: float = Field(0.999, ge=0, lt=1)
    """Decay of the running average of the weights, which is what is validated and kept; 0 keeps the last weights."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of what is multiplied in large matrix products and in attention; weights and updates stay in float32.
    auto is bfloat16 on GPUs and CPUs that have instructions for it, where it is faster, and lets GPUs round the factors
    of other products to TF32; float32 is alike on all."""

    compile: bool = False
    """Of Transformers, on a GPU above all: compile the forward pass and its gradients into few kernels
    (`torch.compile`). Batches are padded to a few lengths, and the first batch of each length takes many seconds."""
    sharded: bool = False
    """Of several processes, each holds a part of all weights, gradients and moments (FSDP2), for models too large to be
    trained whole on one device; slower where they are not."""
    deterministic: bool = False
    """On GPUs, only operations that add in a fixed order, so that the same seed gives the same bits; slower."""

    validate_every: int = Field(500, ge=1, le=MANY)
    """Updates between two validations."""
    validate_sentences: int = Field(500, ge=1, le=MANY)
    """Validation sentences translated for BLEU; the loss is measured over all of them."""
    save_minutes: float = Field(5, gt=0, le=MANY)
    """Minutes between two checkpoints, besides those at each validation."""
    log_every: int = Field(20, ge=1, le=MANY)
    """Updates between two rows in metrics.jsonl and TensorBoard."""

    @model_validator(mode="after")
    def _muon_wants_whole_matrices(self) -> TrainingOptions:
        if self.sharded and self.optimizer == "muon":
            raise ValueError("training.sharded holds parts of matrices, and optimizer=muon wants whole ones")
        return self

    @model_validator(mode="after")
    def _whole_models_are_compiled(self) -> TrainingOptions:
        for name in ("sharded", "adapter_rank", "distillation_weight"):
            if self.compile and getattr(self, name):
                raise ValueError(f"training.compile and training.{name} do not go together")
        return self

    @model_validator(mode="after")
    def _what_is_begun_with_is_there(self) -> TrainingOptions:
        for name in ("l2_sp", "distillation_weight", "adapter_rank"):
            if getattr(self, name) and not self.begin_from:
                raise ValueError(f"training.{name} is for what begins as another run: name it with train --init-from")
            if getattr(self, name) and self.sharded:
                raise ValueError(f"training.{name} wants whole matrices, and training.sharded holds parts of them")
        if self.l2_sp and self.adapter_rank:
            raise ValueError("training.l2_sp holds weights that training.adapter_rank leaves as they are anyway")
        return self
