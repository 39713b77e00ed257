// The boxes of the figure "Pass", in the order in which a model computes them, with their equations.
//
// A part is { title, side: "source" or "target", groups: [{ title, boxes }, …] }. A box is {
//   kind: "pieces", "states", "attention" or "distribution",
//   title,
//   point: the name under which the engine passes its rows to `at`; of an attention, the name without the head,
//   equation,
//   heads: their number, of an attention,
//   canSwitch: whether the rows can be set to 0 }

// Return the parts of a model, given by its options in model.js.
// isMasked: whether the decoder's self-attention has its mask
export function createParts(options, isMasked = true) {
  return { transformer: transformerParts, recurrent: recurrentParts }[options.kind](options, isMasked);
}

// Return the boxes that are shown of each hypothesis of a beam search: its pieces, the last attention to the source, the probabilities.
export function hypothesisBoxes(parts) {
  const boxes = parts
    .filter(({ side }) => side === "target")
    .flatMap(({ groups }) => groups.flatMap((group) => group.boxes));
  return ["pieces", "attention", "distribution"].map((kind) => boxes.findLast((box) => box.kind === kind));
}

function transformerParts({ encoder_layers, decoder_layers, heads, norm, nonlinearity }, isMasked) {
  const isPre = norm === "pre";
  const f = { relu: "max(0, x W₁ + b₁)", swish: "y σ(y), where y = x W₁ + b₁" }[nonlinearity];
  const states = (title, point, equation, canSwitch = false) => ({ kind: "states", title, point, equation, canSwitch });
  const finalNorm = isPre ? "LayerNorm of the last layer’s states" : "the last layer’s states";

  function input(side, part) {
    const boxes = [
      { kind: "pieces", title: "Pieces", point: "", equation: "" },
      states("Embeddings", `${side}.tokens`, "E[piece] · √D"),
      states("Positions", `${side}.positions`, "sin and cos of p / 10000^(2i/D)", true),
      states("Input", `${part}.input`, "embeddings + positions"),
    ];
    return { title: "Input", boxes };
  }

  // The boxes of a sublayer: what it computes, and the states after it.
  function sublayer(title, boxes, after) {
    const name = title[0].toLowerCase() + title.slice(1);
    const equation = isPre ? `x + ${name}(LayerNorm(x))` : `LayerNorm(x + ${name}(x))`;
    return [...boxes, states(isPre ? "Residual" : "Residual and norm", after, equation)];
  }

  function attention(title, point, equation, after) {
    const scores = { kind: "attention", title, point, equation, heads };
    return sublayer(
      title,
      [scores, states("Output of the heads", `${point}.output`, "[head 0; head 1; …] Wᴼ", true)],
      after,
    );
  }

  function feedForward(block) {
    const boxes = [
      states("Inner layer", `${block}.feed_forward.inner`, f),
      states("Feed-forward", `${block}.feed_forward`, "inner W₂ + b₂", true),
    ];
    return sublayer("Feed-forward", boxes, `${block}.output`);
  }

  const encoderLayers = Array.from({ length: encoder_layers }, (_, layer) => {
    const block = `encoder.${layer}`;
    const equation = "softmax(Q Kᵀ / √d) V; Q, K and V are computed from the source";
    const boxes = attention("Self-attention", `${block}.self`, equation, `${block}.after_self`);
    return { title: `Encoder layer ${layer}`, boxes: [...boxes, ...feedForward(block)] };
  });
  const decoderLayers = Array.from({ length: decoder_layers }, (_, layer) => {
    const block = `decoder.${layer}`;
    const visible = isMasked ? "the words up to this one, as later ones are masked" : "all words, as the mask is off";
    const self = `softmax(Q Kᵀ / √d) V; K and V of ${visible}`;
    const cross = "softmax(Q Kᵀ / √d) V; Q from the translation, K and V from the memory";
    const boxes = [
      ...attention(
        isMasked ? "Masked self-attention" : "Self-attention without mask",
        `${block}.self`,
        self,
        `${block}.after_self`,
      ),
      ...attention("Cross-attention", `${block}.cross`, cross, `${block}.after_cross`),
      ...feedForward(block),
    ];
    return { title: `Decoder layer ${layer}`, boxes };
  });
  const memory = { title: "Memory", boxes: [states("Memory", "encoder.output", finalNorm)] };
  return [
    { title: "Encoder", side: "source", groups: [input("source", "encoder"), ...encoderLayers, memory] },
    {
      title: "Decoder",
      side: "target",
      groups: [input("target", "decoder"), ...decoderLayers, output(states("Features", "decoder.output", finalNorm))],
    },
  ];
}

// Bahdanau's model; its equations are those of bahdanau.js.
function recurrentParts() {
  const states = (title, point, equation) => ({ kind: "states", title, point, equation });
  const pieces = { kind: "pieces", title: "Pieces", point: "", equation: "" };
  const attention = {
    kind: "attention",
    title: "Attention",
    point: "decoder.0.cross",
    equation: "α = softmax(e), eⱼ = vᵀ tanh(W sᵢ₋₁ + U yⱼ); c = Σ αⱼ yⱼ",
    heads: 1,
  };
  const encoder = [
    states("Forward states", "encoder.forward", "GRU from the first piece to the last"),
    states("Backward states", "encoder.backward", "GRU from the last piece to the first"),
  ];
  return [
    {
      title: "Encoder",
      side: "source",
      groups: [
        { title: "Input", boxes: [pieces, states("Embeddings", "encoder.input", "E[piece] · √D")] },
        { title: "Encoder", boxes: encoder },
        { title: "Memory", boxes: [states("Memory", "encoder.output", "yⱼ = [forward; backward]")] },
      ],
    },
    {
      title: "Decoder",
      side: "target",
      groups: [
        { title: "Input", boxes: [pieces, states("Embeddings", "decoder.input", "E[piece] · √D")] },
        { title: "Decoder", boxes: [attention, states("State", "decoder.0.output", "sᵢ = GRU(sᵢ₋₁, [E w; c])")] },
        output(states("Readout", "decoder.output", "the larger of each pair in [sᵢ; E w; c] Wᴿ")),
      ],
    },
  ];
}

function output(features) {
  const equation = "softmax(features Wᵀ + b) over the vocabulary";
  const distribution = { kind: "distribution", title: "Logits and probabilities", point: "logits", equation };
  return { title: "Next word", boxes: [features, distribution] };
}
