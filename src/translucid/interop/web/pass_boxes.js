// The boxes of the figure "Pass", in the order in which a model computes them, with their equations.
//
// A part is { title, side: "source" or "target", groups: [{ title, boxes }, …] }. A box is {
//   kind: "pieces", "states", "attention" or "distribution",
//   title,
//   point: the name under which the engine passes its rows to `at`; of an attention, the name without the head,
//   equation,
//   heads: their number, of an attention,
//   canSwitch: whether the rows can be set to 0 }

import { gettext } from "./messages.js";

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
  const f = { relu: "max(0, x W₁ + b₁)", swish: gettext("y σ(y), where y = x W₁ + b₁") }[nonlinearity];
  const states = (title, point, equation, canSwitch = false) => ({ kind: "states", title, point, equation, canSwitch });
  const finalNorm = isPre ? gettext("LayerNorm of the last layer’s states") : gettext("the last layer’s states");

  function input(side, part) {
    const boxes = [
      { kind: "pieces", title: gettext("Pieces"), point: "", equation: "" },
      states(gettext("Embeddings"), `${side}.tokens`, gettext("E[piece] · √D")),
      states(gettext("Positions"), `${side}.positions`, gettext("sin and cos of p / 10000^(2i/D)"), true),
      states(gettext("Input"), `${part}.input`, gettext("embeddings + positions")),
    ];
    return { title: gettext("Input"), boxes };
  }

  // The boxes of a sublayer: what it computes, and the states after it.
  function sublayer(title, boxes, after) {
    const name = title[0].toLowerCase() + title.slice(1);
    const equation = isPre ? `x + ${name}(LayerNorm(x))` : `LayerNorm(x + ${name}(x))`;
    return [...boxes, states(isPre ? gettext("Residual") : gettext("Residual and norm"), after, equation)];
  }

  function attention(title, point, equation, after) {
    const scores = { kind: "attention", title, point, equation, heads };
    return sublayer(
      title,
      [scores, states(gettext("Output of the heads"), `${point}.output`, gettext("[head 0; head 1; …] Wᴼ"), true)],
      after,
    );
  }

  function feedForward(block) {
    const boxes = [
      states(gettext("Inner layer"), `${block}.feed_forward.inner`, f),
      states(gettext("Feed-forward"), `${block}.feed_forward`, gettext("inner W₂ + b₂"), true),
    ];
    return sublayer(gettext("Feed-forward"), boxes, `${block}.output`);
  }

  const encoderLayers = Array.from({ length: encoder_layers }, (_, layer) => {
    const block = `encoder.${layer}`;
    const equation = gettext("softmax(Q Kᵀ / √d) V; Q, K and V are computed from the source");
    const boxes = attention(gettext("Self-attention"), `${block}.self`, equation, `${block}.after_self`);
    return { title: gettext("Encoder layer {number}", { number: layer }), boxes: [...boxes, ...feedForward(block)] };
  });
  const decoderLayers = Array.from({ length: decoder_layers }, (_, layer) => {
    const block = `decoder.${layer}`;
    const self = isMasked
      ? gettext("softmax(Q Kᵀ / √d) V; K and V of the words up to this one, as later ones are masked")
      : gettext("softmax(Q Kᵀ / √d) V; K and V of all words, as the mask is off");
    const cross = gettext("softmax(Q Kᵀ / √d) V; Q from the translation, K and V from the memory");
    const boxes = [
      ...attention(
        isMasked ? gettext("Masked self-attention") : gettext("Self-attention without mask"),
        `${block}.self`,
        self,
        `${block}.after_self`,
      ),
      ...attention(gettext("Cross-attention"), `${block}.cross`, cross, `${block}.after_cross`),
      ...feedForward(block),
    ];
    return { title: gettext("Decoder layer {number}", { number: layer }), boxes };
  });
  const memory = { title: gettext("Memory"), boxes: [states(gettext("Memory"), "encoder.output", finalNorm)] };
  return [
    { title: gettext("Encoder"), side: "source", groups: [input("source", "encoder"), ...encoderLayers, memory] },
    {
      title: gettext("Decoder"),
      side: "target",
      groups: [
        input("target", "decoder"),
        ...decoderLayers,
        output(states(gettext("Features"), "decoder.output", finalNorm)),
      ],
    },
  ];
}

// Bahdanau's model; its equations are those of bahdanau.js.
function recurrentParts() {
  const states = (title, point, equation) => ({ kind: "states", title, point, equation });
  const pieces = { kind: "pieces", title: gettext("Pieces"), point: "", equation: "" };
  const attention = {
    kind: "attention",
    title: gettext("Attention"),
    point: "decoder.0.cross",
    equation: "α = softmax(e), eⱼ = vᵀ tanh(W sᵢ₋₁ + U yⱼ); c = Σ αⱼ yⱼ",
    heads: 1,
  };
  const encoder = [
    states(gettext("Forward states"), "encoder.forward", gettext("GRU from the first piece to the last")),
    states(gettext("Backward states"), "encoder.backward", gettext("GRU from the last piece to the first")),
  ];
  return [
    {
      title: gettext("Encoder"),
      side: "source",
      groups: [
        {
          title: gettext("Input"),
          boxes: [pieces, states(gettext("Embeddings"), "encoder.input", gettext("E[piece] · √D"))],
        },
        { title: gettext("Encoder"), boxes: encoder },
        {
          title: gettext("Memory"),
          boxes: [states(gettext("Memory"), "encoder.output", gettext("yⱼ = [forward; backward]"))],
        },
      ],
    },
    {
      title: gettext("Decoder"),
      side: "target",
      groups: [
        {
          title: gettext("Input"),
          boxes: [pieces, states(gettext("Embeddings"), "decoder.input", gettext("E[piece] · √D"))],
        },
        {
          title: gettext("Decoder"),
          boxes: [attention, states(gettext("State"), "decoder.0.output", "sᵢ = GRU(sᵢ₋₁, [E w; c])")],
        },
        output(states(gettext("Readout"), "decoder.output", gettext("the larger of each pair in [sᵢ; E w; c] Wᴿ"))),
      ],
    },
  ];
}

function output(features) {
  const equation = gettext("softmax(features Wᵀ + b) over the vocabulary");
  const distribution = { kind: "distribution", title: gettext("Logits and probabilities"), point: "logits", equation };
  return { title: gettext("Next word"), boxes: [features, distribution] };
}
