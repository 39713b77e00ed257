"""The figure *Pass* in a browser, compared with PyTorch at every box."""

import math

import pytest
import torch
from playwright.sync_api import Page, expect

from translucid.attention import points_of, recording
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_features
from translucid.models.protocol import SequenceModel

_TERMS = (".queries", ".keys", ".values", ".weights", ".heads", ".feed_forward_input")
"""The ends of the names of points that the boxes of attentions contain, or that have no box."""
BOXES = """(row) => {
  const numbers = (box, list) => [...box.querySelectorAll(`${list} li`)].map((item) => item.textContent);
  const boxes = [...document.querySelectorAll(".pass-box")];
  return Object.fromEntries(boxes.map((box) => [box.dataset.point, {
    numbers: numbers(box, ".numbers:not(.terms)"), terms: numbers(box, ".terms"),
    formula: box.querySelector(".formula")?.textContent,
    scores: [...box.querySelectorAll(".scores tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
  }]));
}"""


def wait_until_drawn(page: Page) -> None:
    """Wait until all boxes of the figure of a pass are drawn, a few at a time."""
    expect(page.locator(".pass")).to_have_attribute("aria-busy", "false", timeout=60_000)


def number(text: str) -> float:
    """Return a number as the page writes it."""
    return float(text.replace("\u2212", "-"))


def points_to_open(model: SequenceModel, head: int) -> list[str]:
    """Return the names of all boxes, for a link; those of attentions with a head."""
    attentions = [
        f"{name.removesuffix('.weights')}.head.{head}" for name in points_of(model) if name.endswith(".weights")
    ]
    sums = [f"{side}.{term}" for side in ("source", "target") for term in ("tokens", "positions")]
    return [*attentions, *sorted(_states(model)), *sums]


def _states(model: SequenceModel) -> set[str]:
    return {point for point in points_of(model) if not point.endswith(_TERMS)}


def compare_boxes(
    page: Page, model: SequenceModel, tokenizer: Tokenizer, ids: list[int], target: list[int], row: int, head: int
) -> None:
    """Compare all numbers of a row with those of PyTorch to 1e-4; all boxes are open, with the same head."""
    boxes = page.evaluate(BOXES)
    is_transformer = "encoder.0.self.weights" in points_of(model)
    with torch.inference_mode(), recording(model, list(points_of(model))) as record:
        features = forced_features(model, model.encode(torch.tensor([ids])), torch.tensor([target]))
        logits = model.output(features)[0, row].tolist()
    exact = {point: rows[0] for point, rows in record.items()} | {"decoder.output": features[0]}
    compared = set()
    for point, box in boxes.items():
        if box["terms"]:
            weights, rows = (
                exact[f"{point}.weights"][head, row],
                exact.get(f"{point}.heads", exact[f"{point}.output"][None]),
            )
            compare_attention(box, weights, rows[head, row])
            if is_transformer:
                key = max(range(len(weights)), key=weights.tolist().__getitem__)
                factors = [exact[f"{point}.queries"][head, row], exact[f"{point}.keys"][head, key]]
                shown = [[number(factor) for factor in term.split(" · ")] for term in box["terms"]]
                assert torch.tensor(shown) == pytest.approx(torch.stack(factors, 1), abs=1e-4)
        elif point in exact:
            assert [*map(number, box["numbers"])] == pytest.approx(exact[point][row].tolist(), abs=1e-4), point
        else:
            continue
        compared.add(point)
    named = {attention for attention, _, term in (point.rpartition(".") for point in exact) if term == "weights"}
    assert compared == named | _states(model) - (set() if is_transformer else {"decoder.0.cross.output"})
    for side, part in [("source", "encoder"), ("target", "decoder")] if is_transformer else []:
        tokens, positions = (boxes[f"{side}.{term}"]["numbers"] for term in ("tokens", "positions"))
        total = [number(token) + number(position) for token, position in zip(tokens, positions, strict=True)]
        assert total == pytest.approx(exact[f"{part}.input"][row].tolist(), abs=2e-4)
    for piece, logit, _, _ in boxes["logits"]["scores"]:
        names = tokenizer.target_pieces(range(len(logits)))
        tokens = [i for i, name in enumerate(names) if (name.strip("▁") or "▁") == piece]  # "a" and "▁a" look the same
        assert min(abs(number(logit) - logits[token]) for token in tokens) < 1e-4


def compare_attention(box, weights, context):
    """Compare the scores, the weights and the context of a box with the weights and the context of PyTorch."""
    scores, shown = ([number(row[i]) for row in box["scores"]] for i in (1, 3))
    assert shown + [0.0] * (len(weights) - len(shown)) == pytest.approx(weights.tolist(), abs=1e-4)
    assert torch.tensor(scores).softmax(0).tolist() == pytest.approx(shown, abs=2e-4)
    total, score = sum(math.prod(map(number, term.split(" · "))) for term in box["terms"]), max(scores)
    assert number(box["formula"].split("= ")[-1]) == score
    if "√" in box["formula"]:
        total /= math.sqrt(len(box["terms"]))
    assert total == pytest.approx(score, abs=0.01)  # the factors are rounded
    assert [*map(number, box["numbers"])] == pytest.approx(context.tolist(), abs=1e-4)
