"""The scripts of a web export compute what PyTorch computes with the same rounded weights, from files.

All is tested in Chromium; in Firefox one page of each kind of model.
"""

import json
import math
import re
import shutil
from copy import deepcopy
from itertools import chain
from xml.etree import ElementTree

import pytest
import torch
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS
from PIL import Image
from playwright.sync_api import expect

from bitext.pair import Pair
from tests.probes.pass_figure import compare_boxes, number, points_to_open, wait_until_drawn
from tests.probes.pseudo_locale import CODE, english_texts, pseudo_catalog, shown_texts
from translucid.attention import MultiHeadAttention, handling
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.maps import forced_features, forced_pass
from translucid.decoding.search import TorchEngine
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.ablation import Ablation
from translucid.inspection.rendering.message_catalogs import TEMPLATE
from translucid.interop.web.export import export_web, refuse_other_models, rounded
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions

LIMITS = {"max_length_ratio": 1.0, "max_length_extra": 3, "max_loops": 2}
DECODING = {
    "pre-norm": DecodingOptions(beam=3, **LIMITS),
    "post-norm": DecodingOptions(beam=4, length_penalty=4.0, min_length=3, **LIMITS),
    "bahdanau": DecodingOptions(beam=4, length_penalty=0.0, **LIMITS),
}
BLOCKS = {"width": 12, "heads": 2, "feed_forward": 20, "encoder_layers": 1, "decoder_layers": 2}
MODELS = {
    "pre-norm": TransformerOptions(**BLOCKS),
    "post-norm": TransformerOptions(
        **BLOCKS, norm="post", nonlinearity="swish", share_embeddings=False, tie_output=False, first_position=2
    ),
    "bahdanau": RecurrentOptions(width=12, attention="bahdanau", cell="gru", share_embeddings=False),
}
HEADS = {
    "pre-norm": "decoder.1.self.head.1",
    "post-norm": "encoder.0.self.head.0",
    "bahdanau": "decoder.0.cross.head.0",
}
TEXTS = ["I like soccer and also going to the beach", "  naïve ﬁne  ① ２０ … cafe\u0301 😀😀 c▁d ", "Do we ſ\u0307ee?"]
ASK = """(texts) => texts.map(([text, off]) => {
  const translator = new WebTranslator(MODEL);
  const at = changed({ off, isScaled: true }, MODEL.options);
  const ids = translator.encode(text);
  const { tokens, score, tree, text: written } = translator.translate(ids, at);
  const { points, logProbs } = translator.inspect(ids, tokens, at);
  const maps = {};
  for (const [name, rows] of Object.entries(points)) {
    const [attention, head] = name.split(".head.");
    if (head) (maps[attention] ??= [])[head] = rows.map(({ weights }) => weights);
  }
  return { ids, tokens, score, tree, written, maps: JSON.parse(JSON.stringify(maps, (_, value) => (
    value instanceof Float64Array ? [...value] : value))), logProbs };
})"""


@pytest.fixture(scope="module")
def pairs():
    return [Pair(pair.source, pair.target) for pair in generate(200, max_words=8)]


@pytest.fixture(scope="module")
def exported(pairs, tmp_path_factory):
    """Return a function that exports a random model: the model, its tokenizer and the folder."""
    folder = tmp_path_factory.mktemp("web")

    def export(name):
        joint = MODELS[name].share_embeddings
        tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, joint=joint), seed=1)
        torch.manual_seed(3)
        model = build_model(MODELS[name], tokenizer.source_size, tokenizer.target_size).eval()
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight), alpha=0.3)
            if name == "post-norm":
                model.output.bias[SPECIAL.end] += 3  # some hypotheses end early
        settings = {"decoding": DECODING[name], "longest": 50, "languages": ("en", "es"), "name": name}
        settings["package_version"] = "0123456789abcdef+changes"
        if not (folder / name).exists():
            export_web(model, tokenizer, folder / name, **settings)
        return model, tokenizer, folder / name

    return export


@pytest.fixture
def page(context):
    page = context.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("name", MODELS)
def test_a_page_computes_what_pytorch_computes(exported, page, name):
    *_, folder = exported(name)
    page.goto((folder / "index.html").as_uri())
    compare(exported, name, page.evaluate(ASK, questions(name)))


@pytest.mark.parametrize(
    ("languages", "codes", "names"),
    [
        (("en_US", "pt_BR"), ["en-US", "pt-BR"], ["English (United States)", "Portuguese (Brazil)"]),
        (("eng_Latn", "zho_Hant"), ["en", "zh-Hant"], ["English", "Chinese (Traditional)"]),
        (("english", 'x y"</script>'), ["", ""], ["english", 'x y"</script>']),
        (("en-", "1234"), ["", ""], ["en-", "1234"]),
        ((None, None), ["", ""], ["Text", "Translation"]),
    ],
)
def test_a_page_works_whatever_the_languages_are_called(exported, page, tmp_path, languages, codes, names):
    """Browsers throw errors for codes that are not standard ones."""
    model, tokenizer, _ = exported("post-norm")
    decoding = DECODING["post-norm"]
    export_web(model, tokenizer, tmp_path / "web", decoding=decoding, longest=50, languages=languages, name="run")
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((tmp_path / "web" / "index.html").as_uri() + "#text=" + TEXTS[0].replace(" ", "+"))
    page.wait_for_function("document.getElementById('time').textContent")
    assert problems == []
    assert page.locator("#source-language, #target-language").all_inner_texts() == names
    assert page.evaluate("['text', 'translation'].map((id) => document.getElementById(id).lang)") == codes
    # In another language, names of languages follow if their codes are standard.
    page.goto("about:blank")
    page.goto((tmp_path / "web" / "index.html").as_uri() + "?lang=de#text=" + TEXTS[0].replace(" ", "+"))
    expect(page.get_by_role("tab").first).to_have_text("Aufmerksamkeit")
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.locator("#source-language").inner_text() == _GERMAN.get(codes[0], names[0])
    assert problems == []


_GERMAN = {"en-US": "Englisch (Vereinigte Staaten)", "en": "Englisch"}


def test_no_text_is_only_english_and_longer_texts_fit_from_right_to_left(exported, page, tmp_path):
    """Test the views in the pseudo-language on a phone; see tests/serving/test_page_accessible.py."""
    _, tokenizer, folder = exported("pre-norm")
    folder = shutil.copytree(folder, tmp_path / "web")
    script = folder / "language.js"
    script.write_text(re.sub(r"\A.*\n", f"globalThis.pageLanguages = {{'{CODE}': '{CODE}'}};\n", script.read_text()))
    (folder / "languages" / f"{CODE}.js").write_text(pseudo_catalog(TEMPLATE))
    known = {word for piece in tokenizer.target_pieces(range(150)) for word in re.findall("[a-z]+", piece.lower())}
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(
        f"{(folder / 'index.html').as_uri()}?lang={CODE}#text=I+like+soccer&view=pass&point=decoder.1.cross.head.1"
    )
    wait_until_drawn(page)
    page.get_by_role("switch").nth(2).press("Enter")  # the beam search
    expect(page.locator(".hypotheses section").first).to_be_visible()
    wait_until_drawn(page)
    for tab in range(3, -1, -1):
        page.get_by_role("tab").nth(tab).click()
        expect(page.get_by_role("tab").nth(tab)).to_have_attribute("aria-selected", "true")
        assert page.evaluate("[document.documentElement.lang, document.dir]") == [CODE, "rtl"]
        assert english_texts(shown_texts(page), known | {"like", "soccer", "layernorm", "max", "softmax"}) == [], tab
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_link_carries_the_sentence_the_map_and_the_step(exported, page):
    *_, folder = exported("pre-norm")
    link = f"{(folder / 'index.html').as_uri()}#text=I+sing.+I+like+soccer"
    page.goto(f"{link}&view=attention&sentence=1&map=layer+1%2C+head+0")
    select = page.get_by_label("layer and head")
    expect(select.locator("option:checked")).to_have_text("layer 1, head 0")
    expect(page.get_by_role("tab", name="2")).to_have_attribute("aria-selected", "true")
    select.select_option(label="layer 0, head 1")
    page.get_by_role("tab", name="Steps").click()
    page.get_by_role("slider").press("End")
    page.get_by_role("tab", name="Attention").click()
    page.reload()
    expect(select.locator("option:checked")).to_have_text("layer 0, head 1")
    page.goto("about:blank")
    page.goto(f"{link}&view=steps&sentence=1&step=1")
    expect(page.locator(".step-description")).to_contain_text("Step 2 of")
    page.get_by_role("slider").press("ArrowRight")
    page.reload()
    expect(page.locator(".step-description")).to_contain_text("Step 3 of")
    page.fill("#text", "I like soccer")
    page.get_by_role("button", name="Translate").click()
    page.wait_for_function("!location.hash.includes('sentence')")
    expect(page.locator("#inspector .above .word").first).to_have_text("I")


def questions(name):
    """Return texts, each with the heads that are off."""
    return [(TEXTS[0], []), (TEXTS[1], []), (TEXTS[2], []), (TEXTS[0], [HEADS[name]])]


def compare(exported, name, answers):
    """Compare a page's answers with PyTorch."""
    model, tokenizer, _ = exported(name)
    scores = set()
    for (text, off), answer in zip(questions(name), answers, strict=True):
        searched = Ablation(tuple(off)).applied(rounded(model)) if off else rounded(model)
        (source,) = tokenizer.encode_source([text])
        assert answer["ids"] == [*source, SPECIAL.end]
        trace, best = TorchEngine.of(searched, tokenizer, torch.device("cpu")).traced(answer["ids"], DECODING[name])
        assert answer["tokens"] == best.with_end
        assert answer["written"] == tokenizer.decode(best.tokens).strip()
        assert answer["score"] == pytest.approx(best.score, abs=1e-4)
        scores.add(round(answer["score"], 4))
        nodes = [(node["parent"], node["token"], node["fate"]) for node in answer["tree"]]
        assert nodes == [(node.parent, node.token, node.fate) for node in trace.nodes]
        ids = torch.tensor([answer["ids"]]), torch.tensor([best.with_end])
        forced = forced_pass(searched, *ids)
        assert answer["logProbs"] == pytest.approx(forced.log_probs[0].tolist(), abs=1e-4)
        if not off:  # the maps of heads that are off are not compared
            compare_maps(answer["maps"], forced.maps)
    assert len(scores) == len(answers)  # the head changes something


def compare_maps(maps, expected):
    """Compare attention weights; the rows of a decoder's self-attention end at their own position."""
    assert maps.keys() == expected.keys()
    for name, weights in expected.items():
        for row, expected_row in zip(chain.from_iterable(maps[name]), weights[0].flatten(0, 1).tolist(), strict=True):
            padded = row + [0.0] * (len(expected_row) - len(row))
            assert padded == pytest.approx(expected_row, abs=1e-5), name


def test_the_page_shows_ribbons_heads_and_steps_without_a_server(exported, page):
    model, tokenizer, folder = exported("pre-norm")
    engine = TorchEngine.of(rounded(model), tokenizer, torch.device("cpu"))
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{(folder / 'index.html').as_uri()}#text=I+like+soccer&view=steps")
    (ids,) = tokenizer.encode_source(["I like soccer"])
    ((best,),) = engine.decode(SearchRequest([[*ids, SPECIAL.end]], DECODING["pre-norm"]))
    expect(page.locator("#translation")).to_have_text(tokenizer.decode(best.tokens).strip())
    words = page.locator("#inspector .below .word")
    expect(words.first).to_be_visible()
    assert " ".join(words.all_inner_texts()[:-1]) == page.inner_text("#translation")
    sure = page.evaluate(
        "[...document.querySelectorAll('.below .word')].map((word) => word.style.getPropertyValue('--probability'))"
    )
    assert math.prod(map(float, sure)) == pytest.approx(math.exp(best.log_probability), rel=1e-3)
    expect(page.get_by_role("tab", name="Steps")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Heads").click()
    expect(page.get_by_role("switch")).to_have_count(2 * (1 + 2 + 2))
    page.locator("[data-head='decoder.1.self.head.1']").click()
    expect(page.locator(".ablation strong")).to_have_text("1 head is off. ")
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator(".tree .node").first).to_be_attached()
    page.get_by_role("region", name="steps of the beam search").focus()  # so that arrow keys scroll it
    assert page.evaluate("document.activeElement.className") == "scroll"
    page.get_by_role("tab", name="Attention").click()
    stub = "(text) => { globalThis.copied = text; }"
    page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {{ writeText: async {stub} }} }})")
    page.get_by_label("layer and head").select_option(label="layer 1, head 0")
    with page.expect_download() as download:
        page.get_by_role("button", name="save as PNG").click()
    with Image.open(download.value.path()) as png:
        png.load()
        assert png.info["Description"].endswith(
            "\ntranslucid look runs/pre-norm 'I like soccer' --layer 1 --head 0 --save attention.png"
        )
    page.get_by_label("layer and head").select_option(label="all layers and heads")
    page.get_by_role("button", name="Copy SVG with caption").click()
    page.wait_for_function("globalThis.copied")
    picture = ElementTree.fromstring(page.evaluate("copied"))
    lines = [
        "runs/pre-norm, Translucid 0123456789+changes",
        "translucid look runs/pre-norm 'I like soccer' --save attention.svg",
    ]
    assert picture[0].text == "\n".join(lines)
    assert [text.text for text in picture[-2:]] == lines
    assert float(picture[-1].get("y")) < float(picture.get("height")) == float(picture.get("viewBox").split()[-1])
    page.fill("#text", "12:30\n" + "many words " * 50)
    expect(page.locator("#problem")).to_contain_text("this model takes at most 50")
    expect(page.locator("#translation")).to_contain_text("12:30")
    assert {url.split(":")[0] for url in requests} == {"file", "blob"}  # blob: the worker


@pytest.mark.parametrize(("name", "is_masked"), [*((name, True) for name in MODELS), ("post-norm", False)])
def test_the_figure_of_a_pass_has_the_numbers_of_pytorch(exported, page, monkeypatch, name, is_masked):
    model, tokenizer, folder = exported(name)
    model, row, head = rounded(model), 1, 0 if name == "bahdanau" else 1
    opened = "".join(f"&point={point}" for point in points_to_open(model, head))
    page.goto(f"{(folder / 'index.html').as_uri()}#text=I+like+soccer&view=pass&step={row}{opened}")
    expect(page.locator(".step-description")).to_contain_text("Word piece 2 of")
    if not is_masked:
        page.get_by_role("switch", name="switch of the decoder’s mask").press("Enter")
        expect(page.locator(".pass-summary")).to_contain_text("Without the mask")
    wait_until_drawn(page)
    page.locator("[data-point='source.pieces'] .chip").nth(row).press("Enter")
    wait_until_drawn(page)
    (ids,) = tokenizer.encode_source(["I like soccer"])
    target = page.evaluate(ASK, [("I like soccer", [])])[0]["tokens"]
    if not is_masked:
        masked = MultiHeadAttention.attend_heads
        monkeypatch.setattr(
            MultiHeadAttention,
            "attend_heads",
            lambda *arguments, causal=False, **options: masked(*arguments, causal=False, **options),
        )
        log_probs = forced_pass(model, torch.tensor([[*ids, SPECIAL.end]]), torch.tensor([target])).log_probs
        loss = page.locator(".pass-summary").inner_text().split(" nats")[0].split()[-1]
        assert number(loss) == pytest.approx(-log_probs.mean().item(), abs=1e-4)
    compare_boxes(page, model, tokenizer, [*ids, SPECIAL.end], target, row, head)


def test_parts_of_a_pass_are_switched_off_and_a_translation_is_given(exported, page):
    model, tokenizer, folder = exported("post-norm")
    model, text = rounded(model), "I like soccer"
    source = torch.tensor([[*tokenizer.encode_source([text])[0], SPECIAL.end]])
    broken_link = "#text=I+like+soccer&view=pass&step=-4&point=none&point=decoder.0.self.head.9"
    page.goto((folder / "index.html").as_uri() + broken_link)
    summary, rows = page.locator(".pass-summary"), page.locator("[data-point='logits'] tr")
    expect(rows).to_have_count(8)
    unscaled = deepcopy(model)
    with torch.no_grad():
        for attention in (module for module in unscaled.modules() if isinstance(module, MultiHeadAttention)):
            for weight in attention.query.parameters():
                weight.mul_(math.sqrt(BLOCKS["width"] / BLOCKS["heads"]))
    scale = page.get_by_role("switch", name="switch of the scale 1/√d")
    shown = []
    for switch, changed, point in (
        (scale, unscaled, "encoder.input"),
        (page.locator("[data-switch='decoder.1.cross.output']"), model, "decoder.1.cross.output"),
        (page.locator("[data-switch='decoder.0.self.head.1']"), model, "decoder.0.self.head.1"),
    ):
        switch.press("Enter")
        expect(summary).not_to_have_text("")
        wait_until_drawn(page)
        factor = 1 if switch == scale else 0
        with torch.inference_mode(), handling(changed, {point: lambda x, _, factor=factor: factor * x}):
            features = forced_features(changed, changed.encode(source), torch.tensor([[SPECIAL.end]]))
            best = changed.output(features)[0, 0].topk(8).values.tolist()
        shown.append([number(text) for text in rows.locator("td:nth-child(2)").all_inner_texts()])
        assert shown[-1][:6] == pytest.approx(best[:6], abs=1e-4)
        switch.press("Enter")
        expect(summary).to_have_text("")
        expect(switch).to_be_focused()
    assert shown[0] != shown[1] != shown[2]
    page.get_by_label("Teacher forcing").fill("Me gusta")
    page.keyboard.press("Enter")
    target = [*tokenizer.encode_target(["Me gusta"])[0], SPECIAL.end]
    loss = -forced_pass(model, source, torch.tensor([target])).log_probs.mean().item()
    expect(summary).to_contain_text("Loss of your translation")
    assert number(summary.inner_text().split()[4]) == pytest.approx(loss, abs=1e-4)
    page.get_by_role("slider").press("End")
    wait_until_drawn(page)
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate("(options) => axe.run(options)", DEFAULT_OPTIONS)["violations"] == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("new URLSearchParams(location.hash.slice(1)).get('step')") == str(len(target) - 1)


def test_hypotheses_of_the_beam_search_are_shown_side_by_side(exported, page):
    model, tokenizer, folder = exported("pre-norm")
    model, step = rounded(model), 2
    page.goto(f"{(folder / 'index.html').as_uri()}#text=I+like+soccer&view=pass&step={step}")
    wait_until_drawn(page)
    page.get_by_role("switch", name="beam search").press("Enter")
    columns = page.locator(".hypotheses section")
    expect(columns.first.locator("[data-point='logits'] tr").first).to_be_visible()
    wait_until_drawn(page)
    (ids,) = tokenizer.encode_source(["I like soccer"])
    source = [*ids, SPECIAL.end]
    nodes = TorchEngine.of(model, tokenizer, torch.device("cpu")).traced(source, DECODING["pre-norm"])[0].nodes
    names = tokenizer.target_pieces(range(150))
    paths = {0: []}
    for i, node in enumerate(nodes[1:], 1):
        paths[i] = [*paths[node.parent], node.token]
    continued = [i for i, node in enumerate(nodes) if node.fate == "kept" and len(paths[i]) == step]
    assert columns.count() == len(continued) > 1
    for column, i in zip(columns.all(), continued, strict=True):
        assert number(column.locator("h4").inner_text().split()[-1]) == pytest.approx(nodes[i].log_prob, abs=1e-4)
        shown = column.locator("li").all_inner_texts()
        children = [node for node in nodes[1:] if node.parent == i]
        assert [text.split("”")[0][1:] for text in shown] == [names[node.token].strip("▁") for node in children]
        fates = {"✓": "kept", "■": "ended", "✗": "dropped"}
        assert [fates[text.split("” ")[1][0]] for text in shown] == [node.fate for node in children]
        penalty = ((5 + step + 1) / 6) ** DECODING["pre-norm"].length_penalty
        for text, node in zip(shown, children, strict=True):
            value = node.log_prob / (penalty if node.fate == "ended" else 1)
            assert number(text.split()[-1]) == pytest.approx(value, abs=1e-4)
        features = forced_features(
            model, model.encode(torch.tensor([source])), torch.tensor([[*paths[i], SPECIAL.end]])
        )
        best = model.output(features)[0, step].topk(8).values.tolist()
        logits = [number(text) for text in column.locator("[data-point='logits'] td:nth-child(2)").all_inner_texts()]
        assert logits[:8] == pytest.approx(best, abs=1e-4)
    page.get_by_role("switch", name="beam search").press("Enter")
    expect(columns).to_have_count(0)


@pytest.mark.parametrize("name", ["post-norm", "bahdanau"])
def test_firefox_computes_and_shows_the_same(exported, firefox, name):
    *_, folder = exported(name)
    firefox.open(f"{(folder / 'index.html').as_uri()}#text=I+like+soccer&view=steps")
    compare(
        exported, name, json.loads(firefox.run(f"async () => JSON.stringify(({ASK})({json.dumps(questions(name))}))"))
    )
    translation = firefox.wait("document.querySelector('#translation').textContent")
    words = "[...document.querySelectorAll('#inspector .below .word')].map((word) => word.textContent)"
    assert firefox.wait(f"{words}.slice(0, -1).join(' ')") == translation
    assert firefox.wait("document.querySelectorAll('#inspector svg path').length")
    firefox.run("() => document.querySelectorAll('[role=tab]')[1].click()")
    firefox.run(f"() => document.querySelector('[data-head=\"{HEADS[name]}\"]').click()")
    assert firefox.wait("document.querySelector('.ablation strong')?.textContent") == "1 head is off. "
    firefox.run("() => document.querySelectorAll('[role=tab]')[2].click()")
    assert firefox.run("() => document.querySelectorAll('.tree .node').length")
    firefox.run("() => document.querySelectorAll('[role=tab]')[3].click()")
    assert firefox.wait("document.querySelectorAll('.pass-box canvas').length")
    assert firefox.errors == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TransformerOptions(**BLOCKS, decoder="ssru"), "model.decoder=ssru does not run"),
        (TransformerOptions(**BLOCKS, positions="learned"), "model.positions=learned does not run"),
        (
            RecurrentOptions(width=12, cell="gru", attention="luong-general"),
            "model.attention=luong-general does not run",
        ),
        (RecurrentOptions(width=12, attention="bahdanau", cell="lstm"), "model.cell=lstm does not run"),
    ],
)
def test_other_models_are_rejected(pairs, options, message):
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)
    with pytest.raises(UserError, match=message):
        refuse_other_models(model, tokenizer, DecodingOptions())


def test_other_vocabularies_and_rules_are_rejected(pairs):
    joint = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1)
    model = build_model(MODELS["pre-norm"], 150, 150)
    with pytest.raises(UserError, match="no_repeat_ngram=3"):
        refuse_other_models(model, joint, DecodingOptions(no_repeat_ngram=3))
    unigram = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, kind="unigram"), seed=1)
    with pytest.raises(UserError, match="kind bpe"):
        refuse_other_models(model, unigram, DecodingOptions())
    reserved = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1, reserved=["⟦1⟧"])
    with pytest.raises(UserError, match="reserved pieces"):
        refuse_other_models(model, reserved, DecodingOptions())
