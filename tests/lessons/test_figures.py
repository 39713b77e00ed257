"""The interactive figures in Chromium, opened from files without a server; their numbers equal NumPy's."""

import json
from copy import deepcopy

import numpy as np
import pytest
import sacrebleu
import torch
from playwright.sync_api import expect

from tests.probes.sliders import slide
from translucid.attention.points import handling, recording, recording_weights
from translucid.circuits import Change, Dictionary, Steering
from translucid.corpora.phrasebook import generate
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.decoding.maps import forced_features, forced_pass
from translucid.inspection.words import word_spans
from translucid.lessons.lessons import LESSONS
from translucid.lessons.pages import recorded, save_pages
from translucid.lessons.recording import BOOK, CIRCUITS_OF, HEARD, PAIRS, PASSAGES
from translucid.lessons.runs import translated


def numbers(page, where):
    """Return the numbers that the elements of a selector show."""
    texts = page.locator(where).all_text_contents()
    return np.array([float(text.replace("−", "-").replace("%", "").strip() or "nan") for text in texts])


def test_lessons_embed_the_translator_of_the_demo(lesson):
    page = lesson("heads")
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("tab", name="Heads")).to_have_attribute("aria-selected", "true")
    expect(frame.get_by_role("switch")).to_have_count(2 * (1 + 2 + 2))
    assert frame.locator("h1").is_hidden()
    expect(lesson("masks").locator("iframe")).to_have_count(0)


PAINTED = """(labels) => labels.map((label) => [label.querySelector("span"), label.querySelector("rect")]
  .map((element, i) => getComputedStyle(element)[i ? "fill" : "backgroundColor"]))"""


def choose(page, legend, label):
    group = page.get_by_role("group", name=legend, exact=True).last
    group.get_by_role("radio", name=label, exact=True).check(force=True)


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def exact(tensor):
    return tensor.double().numpy()


def close(shown, expected, digits=2):
    """Check that shown numbers are the expected ones, rounded; recorded numbers have four digits."""
    np.testing.assert_allclose(shown, expected, atol=0.6 * 10**-digits + 0.002)


def test_bottleneck(lesson, models):
    page = lesson("bottleneck")
    first = numbers(page, ".data-table td")
    pairs = [p for p in generate(12, split="test", min_words=2, max_words=4) if len(p.source.split()) == 3][:3]
    translations = models.recurrent("none").translate([p.source for p in pairs], split=False)
    bleu = sacrebleu.corpus_bleu([translation.text for translation in translations], [[p.target for p in pairs]])
    close(first[0], bleu.score, 1)
    assert page.locator(".side").first.locator(".strip").count() == 1
    vectors = page.locator(".side").last.locator(".strip").count()
    assert f"{vectors} vectors: {16 * vectors} numbers" in page.locator(".side").last.inner_text()
    page.get_by_label("Sentence").select_option(index=2)
    assert page.locator(".side").first.locator(".strip").count() == 1
    assert page.locator(".side").last.locator(".strip").count() > vectors
    assert (
        page.locator(".side").last.locator(".translation").inner_text()
        == models.recurrent("additive")
        .translate(page.get_by_label("Sentence").locator("option:checked").inner_text(), split=False)
        .text
    )


def test_alignment_by_hand(lesson):
    page = lesson("alignment")
    h, ys = np.array([1.0, 2.0]), np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    hand = {
        "dot": lambda: ys @ h,
        "general": lambda: ys @ np.array([[0, 1], [1, 0]]).T @ h,
        "additive": lambda: np.tanh(h + ys) @ np.array([1, -1]),
    }
    group = page.get_by_role("group", name="score").first
    for kind, scores in hand.items():
        group.get_by_role("radio", name=kind).check(force=True)
        close(numbers(page, ".score-lines .e"), scores())
        close(numbers(page, ".score-lines .amount"), softmax(scores()))
    group.get_by_role("radio", name="dot").check(force=True)
    page.get_by_label("y₁, number 1").fill("4")
    ys[0, 0] = 4
    close(numbers(page, ".score-lines .amount"), softmax(ys @ h))
    context = page.locator(".by-hand .c").inner_text().replace("−", "-").strip("()").split(",")
    close(np.array(context, float), softmax(ys @ h) @ ys)


@pytest.mark.parametrize("kind", ["dot", "general", "additive"])
def test_alignment_of_a_translator(lesson, models, kind):
    page = lesson("alignment")
    choose(page, "score", kind)
    equation = models.recurrent(kind).translate(BOOK[0], split=False).equation()
    page.get_by_role("group", name="next piece").get_by_role("radio").last.check(force=True)
    close(numbers(page, ".score-table .e"), exact(equation.scores)[-1])
    close(numbers(page, ".score-table .bar .amount"), exact(equation.weights)[-1])
    products = page.locator(".score-table .strip").first.locator("title").all_text_contents()
    assert len(products) == 16
    close(sum(float(text.split("= ")[1].replace("−", "-")) for text in products), exact(equation.scores)[-1, 0], 1)


def test_memory(lesson, models):
    page = lesson("memory")
    choose(page, "head", "1")
    equation = models.demo.translate(BOOK[0], split=False).equation("decoder.1.cross", 1)
    query, key = exact(equation.query)[2], exact(equation.key)
    scores = key @ query / np.sqrt(len(query))
    close(numbers(page, ".memory .score"), scores)
    close(numbers(page, ".memory .bar .amount"), softmax(scores))
    slide(page, "sharpness", 3)
    close(numbers(page, ".memory .bar .amount"), softmax(3 * scores))
    value = exact(equation.value)
    apart = np.linalg.norm(softmax(3 * scores) @ value - value[scores.argmax()])
    assert f"{apart:.1f}" in page.inner_text(".live-region")
    slide(page, "sharpness", 0)
    close(numbers(page, ".memory .bar .amount"), np.full(len(key), 1 / len(key)))
    page.get_by_label("Sentence").select_option(index=1)
    assert len(numbers(page, ".memory .score")) > len(key)


def test_masks(lesson, models, records):
    page = lesson("masks")
    record = json.loads(records["masks"])["sentences"][0]
    size = len(record["tokens"])
    demo = models.demo
    _, ids, target = translated(demo, BOOK[0])
    fed = torch.tensor([[demo.model.bos, *target[:-1], demo.model.pad, demo.model.pad]])
    with torch.inference_mode(), recording_weights(demo.model) as maps:
        # Run the decoder as in training: with a causal mask, and padding on the right.
        demo.model.decode(demo.model.encode(torch.tensor([ids])), fed)
    causal = exact(maps["decoder.0.self"])[0, 1]
    choose(page, "head", "1")
    choose(page, "mask", "causal")
    shown = np.nan_to_num(numbers(page, ".weight button")).reshape(size, size)
    close(shown, causal)
    choose(page, "mask", "both: the target mask")
    shown = np.nan_to_num(numbers(page, ".weight button")).reshape(size, size)
    assert not shown[:, -2:].any()
    close(shown[: size - 2], causal[: size - 2])
    assert "0 % goes to the future and 0 % to padding" in page.inner_text(".live-region")
    page.locator(".weight button").first.focus()  # <s> attends to itself only; mask that by keyboard
    page.keyboard.press("Space")
    assert "fully masked" in page.inner_text(".live-region")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    shown = np.nan_to_num(numbers(page, ".weight button")).reshape(size, size)
    assert not shown[0].any() and shown[1, 0] == 0 and shown[1, 1] == 1


def test_positions(lesson, models):
    page = lesson("positions")
    width = models.demo.configuration.model.width
    slide(page, "position p", 7)
    slide(page, "shift k", 5)
    page.get_by_role("group", name="pair i").get_by_role("radio").nth(1).check(force=True)

    def at(p):
        angles = p / 10000 ** (2 * np.arange(width // 2) / width)
        return np.stack([np.sin(angles), np.cos(angles)], -1).ravel()

    texts = page.locator(".strips .strip title").all_text_contents()
    shown = np.array([float(text.split(": ")[1].replace("−", "-")) for text in texts[:width]])
    close(shown, at(7), 3)
    summary = page.inner_text(".live-region").replace("−", "-")
    turned = [float(x) for x in summary.rsplit("to (", 1)[1].rstrip(").").split(",")]
    close(np.array(turned), at(12)[8:10], 3)
    close(float(summary.split("turns by ")[1].split()[0]), 5 / 10000 ** (8 / width), 3)
    like = page.locator(".legend").last.locator("span").all_text_contents()
    close(np.array([float(text.split(": ")[1]) for text in like]), [at(7) @ at(7), at(7) @ at(12)])
    waved = page.locator(".legend").first.locator("span").all_text_contents()
    close(np.array([float(text.split()[-1].replace("−", "-")) for text in waved]), at(7)[8:10], 3)
    # The charts have no labels on their curves, only the numbers of the axes.
    axes = page.locator(".chart.draggable").first.locator("text").all_text_contents()
    assert axes == ["−1", "0", "1", "0", "20", "40", "60"]
    waves = page.locator(".chart.draggable").first
    waves.scroll_into_view_if_needed()
    box = waves.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 20)
    page.mouse.up()
    assert int(page.get_by_label("position p", exact=True).input_value()) > 35


def test_heads(lesson, models):
    page = lesson("heads")
    demo = models.demo
    translation, ids, target = translated(demo, BOOK[0])
    assert page.locator(".thumbnails svg").count() == 4
    page.get_by_role("radio", name="1.1").check(force=True)
    colors = page.locator(".thumbnails label").evaluate_all(PAINTED)
    assert colors[3] == colors[0]  # the chosen head is drawn like the others, with a frame
    thumbnails = page.locator(".thumbnails span")
    shadows = thumbnails.evaluate_all("(spans) => spans.map((span) => getComputedStyle(span).boxShadow)")
    assert shadows[3] != "none" and set(shadows[:3]) == {"none"}
    page.locator(".ribbons .below .word").nth(1).hover()
    weights = exact(translation.attention["decoder.1.cross"])[0, 1, 1]
    is_shown = [weight >= 0.01 for weight in weights]
    close(np.nan_to_num(numbers(page, ".ribbons .above .share"))[is_shown] / 100, weights[is_shown])
    attention = demo.model.decoder[1].cross_attention

    def silence(_, given):
        context = given[0].clone()
        context[..., 8:] = 0  # the second of two heads of 8 numbers
        return (context,)

    hook = attention.output.register_forward_pre_hook(silence)
    with torch.inference_mode():
        fed = torch.tensor([[demo.model.bos, *target[:-1]]])
        probabilities = demo.model.decode(demo.model.encode(torch.tensor([ids])), fed)[0].softmax(-1)
    hook.remove()
    shown = numbers(page, ".ablation-table .amount").reshape(-1, 2)
    close(shown[:, 0] / 100, np.exp(translation.inspected[0].log_probs), 3)
    close(shown[:, 1] / 100, exact(probabilities)[range(len(target)), target], 3)
    page.get_by_role("radio", name="source to itself").check(force=True)
    assert page.locator(".thumbnails svg").count() == 2


def test_scale(lesson, models, records):
    page = lesson("scale")
    record = json.loads(records["scale"])
    query, keys = np.array(record["query"]), np.array(record["keys"])
    random, of_model = ".weight-table >> nth=0 >> {}", ".weight-table >> nth=1 >> {}"
    for exponent, power in ((0, 10), (0.5, 10), (1, 3)):
        slide(page, "divide scores by d to the power", exponent)
        slide(page, "dimensions d", power)
        d = 2**power
        scores = keys[:, :d] @ query[:d] / d**exponent
        close(numbers(page, random.format(".score")), scores)
        close(numbers(page, random.format(".bar .amount")), softmax(scores))
    equation = models.demo.translate(BOOK[0], split=False).equation("decoder.1.cross", 0)
    scores = exact(equation.key) @ exact(equation.query)[2] / 8
    close(numbers(page, of_model.format(".score")), scores)
    close(numbers(page, of_model.format(".bar .amount")), softmax(scores))
    # Scaled scores have variance 1 at any width.
    assert abs(record["slopes"]["0.50"][10] - record["slopes"]["0.50"][1]) < 0.03
    assert record["slopes"]["0.00"][10] < 0.2 * record["slopes"]["0.00"][1]


def test_layers(lesson, models):
    """The cells show softmax(E N(h) + b), computed by NumPy from the recorded states h."""
    page = lesson("layers")
    demo = models.demo
    _, ids, target = translated(demo, BOOK[0])
    model = demo.model
    with torch.inference_mode(), recording(model, ["decoder.input", "decoder.0.output", "decoder.1.output"]) as record:
        model.decode(model.encode(torch.tensor([ids])), torch.tensor([[model.bos, *target[:-1]]]))
    norm, output = model.decoder_norm, exact(model.output.weight.detach())
    cells = page.locator(".selectable button")
    assert cells.count() == 3 * len(target)
    ranks = np.zeros((3, len(target)), int)
    for layer, state in enumerate(record.values()):
        h = exact(state)[0]
        h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + norm.eps)
        p = softmax(
            (h * exact(norm.weight.detach()) + exact(norm.bias.detach())) @ output.T + exact(model.output.bias.detach())
        )
        for t, piece in enumerate(target):
            cells.nth(3 * t + layer).click()
            close(numbers(page, ".weight-table .amount >> nth=0")[0] / 100, p[t].max(), 3)
            ranks[layer, t] = 1 + (p[t] > p[t, piece]).sum()
            assert f"has rank {ranks[layer, t]:,} and" in page.inner_text(".live-region")
    # The first layer from which on the written piece has rank 1.
    first = np.logical_and.accumulate(ranks[::-1] == 1)[::-1]
    first[1:] &= ~first[:-1]
    marked = ["✓" in text for text in cells.all_inner_texts()]
    assert np.array_equal(np.reshape(marked, (len(target), 3)).T, first) and any(marked)
    translations = page.locator(".data-table .text").all_inner_texts()
    assert translations[-1] == demo.translate(BOOK[0], beam=1, split=False).text
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.inner_text(".live-region").startswith("layer 0")


def test_contributions(lesson, models):
    page = lesson("contributions")
    for alpha, lengths in ((0.8, (0.5, 4)), (0.5, (2, 1))):
        slide(page, "weight α₁", alpha)
        slide(page, "length of T(x₁)", lengths[0])
        slide(page, "length of T(x₂)", lengths[1])
        terms = np.array([[1, 1], [alpha * lengths[0], 0], [0, (1 - alpha) * lengths[1]]])
        closer = np.maximum(0, terms.sum() - np.abs(terms.sum(0) - terms).sum(1))
        close(numbers(page, ".by-hand .c .amount"), closer / closer.sum())
        close(numbers(page, ".by-hand .length"), terms.sum(1))
    _, ids, target = translated(models.demo, BOOK[0])
    (inspected,) = models.demo.inspector.forced_decoding([EncodedPair(ids, target)], contributions=True)
    step = min(2, len(target) - 1)
    close(numbers(page, ".of-model .weights .amount"), exact(inspected.cross())[step])
    close(numbers(page, ".of-model .norms .amount"), exact(inspected.cross(method="norms"))[step])
    shares = numbers(page, ".of-model .contributions .amount")
    contributions = inspected.contributions
    expected = exact(contributions.source[step]), exact(contributions.prefix[step, : step + 1])
    close(shares, np.concatenate(expected))
    close(shares.sum(), 1, 1)
    choose(page, "measure", "contributions")
    assert page.locator(".ribbons .above .word").count() == len(ids) + len(target)


def test_ablation(lesson, models, records):
    """Switching a head off has the same effect as setting its columns of the output projection to 0."""
    page = lesson("ablation")
    demo = models.demo
    _, ids, target = translated(demo, BOOK[0])
    changed = deepcopy(demo.model)
    with torch.no_grad():
        changed.decoder[1].cross_attention.output.weight[:, 8:] = 0  # the second of two heads of 8 numbers
    pair = torch.tensor([ids]), torch.tensor([target])
    lost = forced_pass(demo.model, *pair).log_probs.sum() - forced_pass(changed, *pair).log_probs.sum()
    page.get_by_role("button", name="decoder.1.cross.head.1 off").click()
    close(numbers(page, ".selectable [aria-pressed=true]")[0], lost.item())
    off = demo.ablated("decoder.1.cross.head.1").translate(BOOK[0], beam=1, split=False).text
    assert page.locator(".translation").first.inner_text() == off
    assert "decoder.1.cross.head.1 is off" in page.inner_text(".live-region >> nth=0")
    record = json.loads(records["ablation"])["sentences"][0]
    least = sorted(zip(record["losses"], record["heads"], strict=True))[:3]
    slide(page, "heads off, the least important first", 3)
    without = demo.ablated(*(head for _, head in least)).translate(BOOK[0], beam=1, split=False).text
    assert page.locator(".translation").nth(1).inner_text() == without
    assert "7 of 10 heads are left" in page.locator(".figure-content .hint").nth(1).inner_text()


def test_patching(lesson, models):
    page = lesson("patching")
    (clean, other), (target, words) = next(iter(PAIRS.items()))
    patching = models.demo.inspector.patch(clean, other, words, target=target)
    for kind, part in zip(("encoder states", "decoder states"), (patching.parts[0], patching.parts[2]), strict=True):
        choose(page, "states", kind)
        shown = numbers(page, ".selectable button").reshape(part.carried.shape)
        np.testing.assert_allclose(shown / 100, exact(part.carried), atol=0.006)
    choose(page, "states", "encoder states")
    page.locator(".selectable button").nth(1).click()  # the noun's embedding, as the sentences differ only in the noun
    assert "100 % of the way to CLEAN" in page.inner_text(".live-region")
    as_clean = models.demo.translate(clean, beam=1, split=False).text
    assert page.inner_text(".translation").endswith(as_clean)


def test_context(lesson, models):
    """Without the previous sentence, the translation and the log-odds L are those of the sentence alone."""
    page = lesson("context")
    (before, sentence), translations = next(iter(PASSAGES.items()))
    model, tokenizer = models.context.model, models.context.tokenizer

    def log_odds(*sources):
        *context, last = tokenizer.encode_source(sources)
        ids = [id for source in context for id in (*source, tokenizer.source_id(SEPARATOR))]
        sums = []
        for target in tokenizer.encode_target(translations):
            target = [*target, model.eos]
            with torch.inference_mode():
                fed = torch.tensor([[model.bos, *target[:-1]]])
                logits = model.decode(model.encode(torch.tensor([[*ids, *last, model.eos]])), fed)[0]
            sums.append(np.log(softmax(exact(logits))[range(len(target)), target]).sum())
        return sums[0] - sums[1]

    for context, sources in ((before, [before, sentence]), (None, [sentence])):
        page.get_by_role("checkbox", name=before).set_checked(bool(context), force=True)
        written = models.context.translate(sentence, beam=1, split=False, context=context).text
        assert page.locator(".translation").text_content() == f"{sentence} → {written}"
        close(numbers(page, ".data-table .chosen .odds")[0], log_odds(*sources))
    assert page.inner_text(".data-table .chosen th") == sentence


def test_live(lesson, models):
    """The staircase has the words that are written after so many source words, with their attention, and what waits."""
    page = lesson("live")
    text = HEARD[0]
    for lag, heard in ((1, 3), (2, 6), (4, 9)):
        slide(page, "lag f, in words", lag)
        slide(page, "words heard", heard)
        session = models.demo.live("alignatt", lag=lag)
        session.read(text)
        session.finish()
        (sentence,) = session.sentences
        written = [part for part in sentence.written if part.heard <= heard]
        waiting = [part for part in sentence.refused if part.heard == heard < len(text.split())]
        assert len(waiting) == (heard < len(text.split()))
        shown = page.locator(".matrix tbody tr")
        names = [part.text for part in written] + [f"{part.text or 'end'} …" for part in waiting]
        assert shown.locator("th").all_inner_texts() == names
        for row, part in zip(shown.all(), [*written, *waiting], strict=True):
            cells = row.locator("td.weight:not(.masked)")
            assert cells.count() == part.heard
            weights = [float(cell.inner_text().split()[0]) for cell in cells.all()]
            np.testing.assert_allclose(weights, part.row, atol=0.006)
            is_last = part.heard < len(text.split())
            assert row.locator("td.last").count() == min(lag, part.heard) * is_last
        said = page.inner_text(".live-region")
        assert said.endswith("wait." if waiting else "the rest is written.")
        for part in waiting:
            assert not part.evidence or f"“{part.text}” looks most at" in said


def test_features(lesson, models, records):
    """The table has the values of the transcoder, and the slider shows the translation of the steered model."""
    page = lesson("features")
    demo, text = models.demo, next(iter(CIRCUITS_OF))
    dictionary = Dictionary.load(demo.loaded.folder)
    target = demo.translate(text, beam=1, split=False).text
    (pair,) = demo.inspector.encoded([(text, target)])
    source, written = (torch.tensor([ids]) for ids in pair.input_ids)
    for label, stack, side in (("translation, decoder", "decoder", 1), ("source, encoder", "encoder", 0)):
        choose(page, "features of", label)
        heads = [head.split() for head in page.locator(".matrix thead th").all_inner_texts()]
        names = [f"{stack}.{layer}.feature.{number}" for _, layer, number in heads]
        shown = numbers(page, ".selectable button").reshape(-1, len(names))
        for name, column in zip(names, shown.T, strict=True):
            sublayer, number = dictionary.parse_feature(name)
            with torch.inference_mode(), recording(demo.model, [f"{sublayer}.feed_forward_input"]) as record:
                forced_features(demo.model, demo.model.encode(source), written)
            x = exact(record[f"{sublayer}.feed_forward_input"][0])
            W_e, b_e = (exact(weight) for weight in [*dictionary.transcoders[sublayer].parameters()][:2])
            f = np.maximum(0, x @ W_e.T + b_e)
            f[f < np.sort(f)[:, -8][:, None]] = 0
            np.testing.assert_allclose(np.nan_to_num(column), f[:, number], atol=0.051)
        assert len(shown) == len(pair.input_ids[side])
    page.locator(".selectable button").nth(1).click()
    assert page.inner_text(".figure-content h3") == names[1]
    steered = demo.with_interventions(Steering(dictionary, {names[1]: Change(factor=4)}))
    slide(page, "strength", 2)
    assert page.inner_text(".translation").endswith(steered.translate(text, beam=1, split=False).text)
    assert page.locator(".contexts li").count() == 3
    close(numbers(page, ".unit-table .amount"), [0.2, 0.5, 0.4, 0.7])


def test_circuit(lesson, models):
    """The sum is the model's logit, and a feature that is switched off gives the logit of the model without it."""
    page = lesson("circuit")
    demo, text = models.demo, next(iter(CIRCUITS_OF))
    target = demo.translate(text, beam=1, split=False).text
    transcoders = Dictionary.load(demo.loaded.folder).transcoders
    word = max(range(len(target.split())), key=lambda i: len(target.split()[i]))
    (pair,) = demo.pipeline.pairs([(text, target)])
    pieces = demo.tokenizer.target_pieces(pair.ids[1])
    _, start, _ = word_spans(pieces)[word]
    start += pieces[start] == "▁"  # a graph is about the first piece that is more than a space
    ids = torch.tensor([pair.ids[0]]), torch.tensor([[demo.model.bos, *pair.ids[1][:start]]])

    def logit():
        with torch.inference_mode():
            logits = demo.model.decode(demo.model.encode(ids[0]), ids[1])[0, -1]
        return (logits[pair.ids[1][start]] - logits.mean()).item()

    effects = numbers(page, ".sum-table td:nth-child(2)")
    close([effects[:-1].sum(), effects[-1]], [logit(), logit()], 1)
    node = page.locator(".graph .node.feature").last
    node.press("Enter")
    name, _ = node.get_attribute("aria-label").split(" at ")
    record = json.loads(page.evaluate("JSON.stringify(lessonRecords.circuit.sentences[0].graph)"))
    place = record["nodes"][int(node.get_attribute("data-node"))]["position"]
    sublayer, number = name.split(".feature.")
    transcoder, seen = transcoders[sublayer], []

    def read(x, first):
        seen[:] = [x]
        return x

    def write(output, first):
        result = output.clone()
        result[0, place] -= transcoder.features(seen[0])[0, place, int(number)] * transcoder.decoder_weight[int(number)]
        return result

    with handling(demo.model, {f"{sublayer}.feed_forward_input": read, f"{sublayer}.feed_forward": write}):
        without = logit()
    details = page.locator(".graph-view .details")
    page.get_by_role("button", name="Switch it off here").click()
    assert f"The logit changes from {nearly(logit(), 2)} to {nearly(without, 2)}" in details.inner_text()
    page.get_by_role("button", name="Switch it off everywhere").click()
    assert f"With {name} off everywhere" in details.inner_text()


def test_beam(lesson, models):
    page = lesson("beam")
    page.get_by_label("Sentence").select_option(label=BOOK[1])
    for width in (1, 4):
        slide(page, "beam K", width)
        translation = models.demo.translate(BOOK[1], split=False, beam=width).nbest[0]
        row = page.locator(".data-table tbody tr.chosen")
        assert row.locator(".text").inner_text() == " ".join(translation.text.split())
        shown = row.locator("td").all_inner_texts()[1:]
        pair = models.demo.inspector.score(BOOK[1], translation.text)
        close(float(shown[1].replace("−", "-")), translation.score, 3)
        # The text may be segmented into other pieces than those that the search has written.
        if len(pair.log_probabilities) == len(translation.hypotheses[0].tokens) + 1:
            close(float(shown[0].replace("−", "-")), sum(pair.log_probabilities), 2)
    nodes = page.locator(".node").count()
    slide(page, "step", 1)
    assert page.locator(".node").count() == 1 + 4 < nodes
    assert "kept" in page.inner_text(".live-region")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".node").nth(5)).to_be_attached()


def share(value):
    return f"{100 * value + 1e-9:.0f} %".replace("-0 %", "0 %").replace("-", "−")


def nearly(value, digits):
    return f"{value:.{digits}f}".replace("-", "−")


def expected_facts(name, record):
    """Return texts that a page must contain, computed from the record that it shows."""
    first = (record.get("sentences") or [None])[0]
    match name:
        case "bottleneck":
            ends = record["chart"][0], record["chart"][-1]
            return [f"{nearly(row['without'], 1)} for sentences of {row['words']} words" for row in ends]
        case "positions":
            return [f"model: {record['width']} in the demo"]
        case "heads":
            return [f"The demo has {len(first['maps']['decoder.0.cross'])} heads", f"In “{first['text']}” it is"]
        case "beam":
            return [
                f"Of {record['candidates']} held-out sentences, a beam of 5 changes {record['differing']} translations",
                f"by chrF, {record['better']} get better and {record['worse']} worse",
            ]
        case "layers":
            places = [
                (step[0][0], read)
                for sentence in record["sentences"]
                for step, read in zip(sentence["predictions"][0], sentence["fed"], strict=True)
            ]
            copied = sum(predicted == read for predicted, read in places)
            decided = record["decided"][1] / sum(record["decided"])
            return [f"In {copied} of {len(places)} places", f"{share(decided)} are decided by layer 0"]
        case "contributions":
            sentence = record["sentences"][-1]
            pieces = sentence["target"]
            step = pieces.index("▁la") if "▁la" in pieces else 0
            largest = [max(sentence[measure][step]) for measure in ("weights", "contributions")]
            return [f"({share(value)})" for value in largest]
        case "ablation":
            unchanged = first["alone"].count(first["together"][0])
            return [f"{unchanged} of {len(first['heads'])} heads can be switched off"]
        case "patching":
            noun = next(i for i, word in enumerate(first["parts"][0]["words"]) if word not in first["clean"].split())
            carried = first["parts"][0]["carried"][1]
            texts = [
                first["moved"][1][noun - 1].removesuffix("."),
                first["moved"][1][noun].removesuffix("."),
                share(carried[noun - 1]),
                share(carried[noun]),
            ]
            return [*texts, "the article’s state" if carried[noun - 1] > carried[noun] else "the noun’s state"]
        case "context":
            same = [s for s in record["sentences"] if s["translations"][0] == s["translations"][1]]
            shown = max(same or record["sentences"], key=lambda s: abs(s["log_odds"][0] - s["log_odds"][1]))
            return [shown["before"], *(nearly(odds, 2) for odds in shown["log_odds"])]
        case "live":
            changed = [
                (sentence, lag)
                for sentence in record["sentences"]
                for lag in sentence["lags"]
                if lag["text"] != sentence["whole"]
            ]
            if not changed:
                return ["Must it be so?"]
            sentence, lag = changed[0]
            return [sentence["whole"], f"With a lag of {lag['lag']}, it is “{lag['text']}”"]
        case "features":
            shown = [
                part for sentence in record["sentences"] for side in sentence["sides"] for part in side["features"]
            ]
            close = sum(part["neuron"]["reads"] >= 0.9 for part in shown)
            texts = [f"{close} of the {len(shown)} features", f"{first['width']} features of a sublayer"]
            labeled = [part for part in shown if part["units"]]
            best = max(labeled, key=lambda part: part["units"]["feature"])
            meaning, units, means = best["card"]["meaning"], best["units"], first["means"]
            return [
                *texts,
                f"{best['card']['name']} stands for “{meaning['label']} {meaning['value']}”",
                f"has an F1 of {nearly(units['feature'], 2)}, the best neuron {nearly(units['neuron'], 2)}",
                f"the mean F1 of the best is {nearly(means['feature'], 2)} and {nearly(means['neuron'], 2)}",
            ]
        case "circuit":
            tested = [sentence["graph"]["faithfulness"] for sentence in record["sentences"]]
            changed = sum(one["top"]["changed"] for one in tested)
            logits = nearly(first["graph"]["logit"], 2), nearly(tested[0]["top"]["logit"], 2)
            return [
                f"the word changes in {changed} of {len(tested)} sentences",
                f"The logit goes from {logits[0]} to {logits[1]}",
            ]
    return []


def test_the_answers_are_those_of_the_record_that_is_shown(context, records, saved):
    """Of a demo that was trained just now; test_accessible.py opens the pages of the packaged records."""
    page = context.new_page()
    for lesson in LESSONS:
        page.goto(f"{saved.as_uri()}/{lesson.name}.html")
        page.wait_for_selector("#figure[data-ready]")
        if lesson.name != "positions":
            assert "translucid learn --train --open" in page.locator(".sentence-select").inner_text()
        facts = page.locator("[data-fact]").all_text_contents()
        assert all(fact and "undefined" not in fact and "NaN" not in fact for fact in facts), (lesson.name, facts)
        text = " ".join((page.locator("main").text_content() or "").split())
        for expected in expected_facts(lesson.name, json.loads(records[lesson.name])):
            assert " ".join(expected.split()) in text, (lesson.name, expected)
    page.close()


STATE = """() => [...document.querySelectorAll("#figure :is(input, select, button), .choices button, main details")]
  .map((part) => [part.checked, part.value, part.ariaPressed, part.open])"""


def test_a_link_shows_what_a_reader_has_chosen(context, tmp_path):
    lessons = tmp_path / "lessons"
    lessons.mkdir()
    save_pages(lessons, {lesson.name: recorded(lesson.name) for lesson in LESSONS})
    page, address = context.new_page(), f"{lessons.as_uri()}/masks.html"
    page.goto(address)
    first = page.evaluate(STATE)
    choose(page, "head", "1")
    choose(page, "mask", "causal")
    page.locator(".weight button").nth(3).press("Space")
    page.locator(".choices button").nth(1).press("Enter")
    page.locator("main summary").first.press("Enter")
    page.get_by_label("Sentence").select_option(index=1)
    page.wait_for_function("new URLSearchParams(location.hash.slice(1)).get('sentence') === '1'")
    chosen, link = page.evaluate(STATE), page.url
    assert chosen != first
    for destination, state in [
        (link, chosen),
        (f"{address}#sentence=99&head=x&mask=7&pressed=999.x&choice=9&open=44&none=1", first),
    ]:
        page.goto("about:blank")  # otherwise only the fragment would change
        page.goto(destination)
        page.wait_for_selector("#figure[data-ready]")
        assert page.evaluate(STATE) == state
    page.close()


def test_the_packaged_examples_show_what_the_lessons_are_about():
    """A beam translates better than greedy search, and each layer of the encoder gives another translation."""
    beam, layers = json.loads(recorded("beam")), json.loads(recorded("layers"))
    assert beam["gains"] >= 1
    for sentence in beam["sentences"][: beam["gains"]]:
        greedy, *_, widest = sentence["searches"]
        assert widest["text"] != greedy["text"] and widest["log_probability"] > greedy["log_probability"]
    translations = layers["sentences"][0]["encoder"]
    assert len(set(translations)) > 1
