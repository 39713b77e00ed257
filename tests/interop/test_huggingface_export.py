"""What we give away is loaded by `transformers`, and is the same model there."""

import json
from functools import cache

import pytest
import torch

from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import TorchEngine
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.huggingface_export import export_huggingface, sines_first
from translucid.interop.huggingface_rows import M2M100
from translucid.interop.importing import import_model
from translucid.models.build import build_model
from translucid.runs.configuration import validated
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, load_weights

TEXTS = [*sentences()[0][:6], "I ☃ like", "it's 3.14, isn't it?"]
LONGEST = 24
"""Tokens of an output, those at both ends too."""
SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 1}
KINDS = {
    "pre": {"norm": "pre"},
    "swish": {"norm": "post", "nonlinearity": "swish", "scale_embeddings": False, "positions": "sinusoidal-halves"},
    "zero start": {"norm": "post", "zero_start": True},
    "untied": {"norm": "post", "tie_output": False, "nonlinearity": "gelu"},
    "untied pre": {"norm": "pre", "tie_output": False},
    "two vocabularies": {"norm": "post", "share_embeddings": False},
    "two, zero start": {"norm": "post", "share_embeddings": False, "zero_start": True, "tie_output": False},
    "one, not shared": {"norm": "post", "share_embeddings": False},
}


@cache
def learned(**sizes):
    """A tokenizer with these options."""
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    return Tokenizer.learn(pairs, TokenizerOptions(**sizes), seed=1)


def made(changes, *, joint=True, **data):
    """An untrained model with opinions, its tokenizer and its configuration."""
    sizes = {"vocabulary": 150, "joint": joint, "kind": "unigram" if joint else "bpe"}
    settings = {"model": {"kind": "transformer", **SMALL, **changes}, "data": {"tokenizer": sizes, **data}}
    configuration = validated(settings)
    tokenizer = learned(**sizes)
    torch.manual_seed(1)
    model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.output.bias.data[:3] += 2  # of what is never said it thinks highly
    engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    ids = [[*ids, SPECIAL.end] for ids in tokenizer.encode_source(TEXTS)]
    options = DecodingOptions(beam=1, max_loops=0, min_length=4, max_length_ratio=0, max_length_extra=LONGEST - 2)
    for _ in range(100):  # until half of the outputs end
        lengths = [len(found.tokens) for (found,) in engine.decode(ids, options)]
        if sum(length < LONGEST - 3 for length in lengths) >= len(TEXTS) / 2:
            break
        model.output.bias.data[SPECIAL.end] += 1.5
    return model, tokenizer, configuration


def loaded(folder, **more):
    """Return the model and the tokenizer of a folder as `transformers` loads them."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder, **more)


class Given:
    """One of our models as `transformers` loads it."""

    def __init__(self, folder, model, tokenizer, configuration):
        self.model, self.tokenizer, self.folder = model, tokenizer, folder
        self.kind = export_huggingface(model, tokenizer, configuration, folder)
        self.theirs, self.their_tokenizer = loaded(folder)

    def target_row(self, our_id):
        rows = json.loads((self.folder / "vocab.json").read_text())
        if (self.folder / "target_vocab.json").exists():
            rows = json.loads((self.folder / "target_vocab.json").read_text())
        name = self.tokenizer.target_pieces([our_id])[0]
        return self.theirs.config.decoder_start_token_id if our_id == SPECIAL.start else rows[name]


@pytest.fixture(scope="module", params=KINDS)
def given(request, tmp_path_factory):
    model, tokenizer, configuration = made(KINDS[request.param], joint="two" not in request.param)
    return Given(tmp_path_factory.mktemp("given") / "out", model, tokenizer, configuration)


def test_the_class_is_the_one_with_such_norms(given):
    pre = given.model.options.norm == "pre"
    assert given.kind == type(given.theirs).__name__ == ("PegasusForConditionalGeneration" if pre else "MarianMTModel")
    assert type(given.their_tokenizer).__name__ == "MarianTokenizer"


def test_texts_become_the_same_pieces_and_pieces_the_same_logits(given):
    batch = given.their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    ours = [[*ids, SPECIAL.end] for ids in given.tokenizer.encode_source(TEXTS)]
    targets = given.tokenizer.encode_target([*sentences()[1][: len(TEXTS)]])
    said = [i for i in range(given.tokenizer.target_size) if i not in (SPECIAL.pad, SPECIAL.start)]
    for i, (ids, target) in enumerate(zip(ours, targets, strict=True)):
        theirs = batch.input_ids[i][: int(batch.attention_mask[i].sum())].tolist()
        names = {row: name for name, row in json.loads((given.folder / "vocab.json").read_text()).items()}
        assert [names[row] for row in theirs] == given.tokenizer.source_pieces(ids)
        fed = [given.target_row(token) for token in (SPECIAL.start, *target)]
        with torch.inference_mode():
            wanted = given.model(torch.tensor([ids]), torch.tensor([[SPECIAL.start, *target]]))
            found = given.theirs(  # in a batch, so that padding is seen to be ignored
                **batch, decoder_input_ids=torch.tensor([fed]).expand(len(TEXTS), -1)
            ).logits[i : i + 1]
        rows = [given.target_row(token) for token in said]
        torch.testing.assert_close(found[..., rows], wanted[..., said], atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_same_is_written(given, beam):
    batch = given.their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    found = given.theirs.generate(
        **batch,
        num_beams=beam,
        length_penalty=0.0,
        early_stopping="never" if beam > 1 else False,
        min_new_tokens=4,
        max_length=LONGEST,
    )
    options = DecodingOptions(beam=beam, length_penalty=0.0, max_loops=0, min_length=4, max_length_ratio=9)
    own = TorchEngine.of(given.model, given.tokenizer, torch.device("cpu"))
    ours = own.decode([[*ids, SPECIAL.end] for ids in given.tokenizer.encode_source(TEXTS)], options)
    ended = other = 0
    for theirs, (mine, *_) in zip(found.tolist(), ours, strict=True):
        end = given.theirs.config.eos_token_id
        wanted = [given.target_row(token) for token in mine.tokens]
        if beam == 1:  # as far as they wrote
            cut = LONGEST - 2
            assert theirs[1:][: len(wanted[:cut])] == wanted[:cut]
        if len(wanted) < LONGEST - 2 and end in theirs[1 : LONGEST - 1]:
            ended += 1
            if theirs[1 : theirs.index(end, 1)] != wanted:
                other += 1
                continue
            written = given.their_tokenizer.decode(theirs, skip_special_tokens=True)
            assert written.split() == given.tokenizer.decode(mine.tokens).split()
    assert ended > 1
    assert other <= (beam > 1)  # one of eight may be found by one search and not by the other


def test_out_and_in_again_it_is_the_same_run(given, tmp_path):
    import_model(given.folder, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    again = run.load_sequence_model(configuration, tokenizer)
    for name in ("norm", "nonlinearity", "zero_start", "tie_output", "scale_embeddings", *SMALL):
        assert getattr(configuration.model, name) == getattr(given.model.options, name)
    ours, theirs = given.tokenizer.encode_source(TEXTS), tokenizer.encode_source(TEXTS)
    assert [tokenizer.source_pieces(ids) for ids in theirs] == [given.tokenizer.source_pieces(ids) for ids in ours]
    place = {name: i for i, name in enumerate(tokenizer.target_vocabulary)}
    columns = [place[name] for name in given.tokenizer.target_vocabulary[3:]]
    for mine, other in zip(ours, theirs, strict=True):
        with torch.inference_mode():
            wanted = given.model(torch.tensor([[*mine, 3]]), torch.tensor([[2, 3]]))[..., 3:]
            found = again(torch.tensor([[*other, 3]]), torch.tensor([[2, 3]]))[..., columns]
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def test_channels_have_no_order():
    model, _, configuration = made({"norm": "post"})
    halves = configuration.model.model_copy(update={"positions": "sinusoidal-halves"})
    other = build_model(halves, 150, 150).eval()
    names = {name for name, _ in other.named_parameters()}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name in names}
    load_weights(other, sines_first(tensors, 16), "here")
    ids = torch.randint(4, 150, (2, 7))
    with torch.inference_mode():
        torch.testing.assert_close(other(ids, ids), model(ids, ids), atol=1e-5, rtol=0)
        load_weights(other, tensors, "here")
        assert (other(ids, ids) - model(ids, ids)).abs().max() > 0.1


IMPORTED = {
    "marian": lambda folder: marian_folder(folder),
    "relu": lambda folder: marian_folder(folder, activation="relu"),
    "languages": lambda folder: marian_folder(folder, languages=("es", "pt")),
    "m2m": lambda folder: many_languages_folder(folder, codes=M2M100),
    "nllb": lambda folder: many_languages_folder(folder, nllb=True),
}


@pytest.fixture(scope="module", params=IMPORTED)
def returned(request, tmp_path_factory):
    """A folder, and what comes of it by way of a run."""
    place = tmp_path_factory.mktemp("returned")
    IMPORTED[request.param](place / "first")
    import_model(place / "first", place / "run")
    run = RunFolder(place / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    export_huggingface(run.load_sequence_model(configuration, tokenizer), tokenizer, configuration, place / "last")
    languages = {"m2m": {"src_lang": "en"}, "nllb": {"src_lang": "eng_Latn"}}.get(request.param, {})
    return [loaded(place / name, **languages) for name in ("first", "last")]


def test_what_came_from_there_goes_back_as_it_was(returned):
    (first, first_tokenizer), (last, last_tokenizer) = returned
    assert type(first_tokenizer) is type(last_tokenizer) and type(first) is type(last)
    texts = TEXTS
    if codes := getattr(first_tokenizer, "supported_language_codes", []):
        assert codes == last_tokenizer.supported_language_codes
        texts = [f"{codes[i % 2]} {text}" for i, text in enumerate(TEXTS)]
    batch, again = (tokenizer(texts, return_tensors="pt", padding=True) for _, tokenizer in returned)
    assert torch.equal(batch.input_ids, again.input_ids)
    fed = torch.cat([torch.full((len(texts), 1), first.config.decoder_start_token_id), batch.input_ids[:, :4]], 1)
    with torch.inference_mode():
        one, other = (model(**batch, decoder_input_ids=fed).logits for model, _ in returned)
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
    for beam in (1, 4):
        options = {"num_beams": beam, "max_length": 30, "do_sample": False}
        if "M2M" in type(first).__name__:
            spanish = "spa_Latn" if "Nllb" in type(first_tokenizer).__name__ else "__es__"
            options["forced_bos_token_id"] = first_tokenizer.convert_tokens_to_ids(spanish)
            assert options["forced_bos_token_id"] == last_tokenizer.convert_tokens_to_ids(spanish)
        never = last.generation_config.bad_words_ids
        written = [
            model.generate(**batch, **options, bad_words_ids=never, length_penalty=1.0, forced_eos_token_id=None)
            for model, _ in returned
        ]
        assert torch.equal(*written)
        texts_written = [
            tokenizer.batch_decode(rows, skip_special_tokens=True)
            for rows, (_, tokenizer) in zip(written, returned, strict=True)
        ]
        assert texts_written[0] == texts_written[1]
    same = (
        *("vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id", "max_position_embeddings"),
        *("d_model", "encoder_layers", "decoder_layers", "scale_embedding", "activation_function"),
    )
    for name in same:
        assert getattr(first.config, name) == getattr(last.config, name), name


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positions": "learned"}, "no translator with model.positions=learned"),
        ({"positions": "none"}, "no translator with model.positions=none"),
        ({"positions": "sinusoidal-tensor2tensor", "norm": "post"}, "positions=sinusoidal-tensor2tensor"),
        ({"first_position": 1, "norm": "post"}, "MarianMTModel has no model.first_position=1"),
        ({"share_embeddings": False, "norm": "pre"}, "PegasusForConditionalGeneration has no model.share_embeddings"),
    ],
)
def test_what_it_has_not_is_refused_in_one_line(tmp_path, changes, said):
    model, tokenizer, configuration = made(changes)
    with pytest.raises(UserError) as refused:
        export_huggingface(model, tokenizer, configuration, tmp_path / "out")
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert [*tmp_path.iterdir()] == []


def test_m2m100_has_no_bias_and_its_own_languages(tmp_path):
    for codes, bias, said in ((M2M100, 1.0, "has learned one"), (("en", "es"), 0.0, "tokenizer knows other ones")):
        many_languages_folder(tmp_path / "theirs", codes=codes)
        import_model(tmp_path / "theirs", tmp_path / "run", overwrite=True)
        run = RunFolder(tmp_path / "run")
        configuration, tokenizer = run.configuration(), run.tokenizer()
        model = run.load_sequence_model(configuration, tokenizer)
        model.output.bias.data[9] += bias
        with pytest.raises(UserError, match=said):
            export_huggingface(model, tokenizer, configuration, tmp_path / "out")


def test_an_m2m100_that_was_fine_tuned_goes_back(corpus, tmp_path):
    many_languages_folder(tmp_path / "theirs", codes=M2M100)
    import_model(tmp_path / "theirs", tmp_path / "run", source_language="en", target_language="es")
    files = ["--train", str(corpus / "test.tsv"), "--valid", str(corpus / "test.tsv"), "--out", str(tmp_path / "mine")]
    limits = ["--no-tune", "--set", "training.max_steps=3", "training.warmup=1", "training.averaging=0"]
    assert run_command(["train", "--init-from", str(tmp_path / "run"), *files, *limits]) == 0
    assert run_command(["export", str(tmp_path / "mine"), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    import_model(tmp_path / "out", tmp_path / "again")
    runs = [RunFolder(tmp_path / name) for name in ("mine", "again")]
    mine, again = (load_tensors(run.model_file)[0] for run in runs)
    # The start token, which was the end token's row, has learned otherwise: it has a row now, so others come earlier.
    assert not torch.equal(*mine["source_embedding.tokens.weight"][[2, 3]])
    before, after = (run.tokenizer().target_pieces(range(len(mine["output.bias"]))) for run in runs)
    moved = [before.index(piece) for piece in after if not piece.startswith("<row")]
    rows = [place for place, piece in enumerate(after) if not piece.startswith("<row")]
    for name in mine:
        if "embedding" in name or name.startswith("output."):
            assert torch.equal(mine[name][moved], again[name][rows]), name
        else:
            assert torch.equal(mine[name], again[name]), name


def test_the_card_says_how_it_is_loaded(tmp_path):
    languages = {"source_language": "en", "target_language": "es"}
    export_huggingface(*made({"norm": "post"}, **languages), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert 'language: ["en", "es"]' in card and "# en to es" in card
    code = card.split("```python\n")[1].split("```")[0].replace('"."', repr(str(tmp_path / "out")))
    exec(compile(code, "card", "exec"), {})  # our own words


def test_a_trained_run_writes_there_what_it_writes_here(small_run, tmp_path, capsys):
    out = tmp_path / "out"
    assert run_command(["export", str(small_run), str(out), "--to", "huggingface"]) == 0
    assert "written" in capsys.readouterr().err
    model, tokenizer = loaded(out)
    translator = Translator.load(small_run, "cpu", "torch")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    written = tokenizer.batch_decode(model.generate(**batch, num_beams=1, max_length=12), skip_special_tokens=True)
    ours = translator.translate(TEXTS, beam=1, max_loops=0, max_length_ratio=0.0, max_length_extra=12)
    assert all(one.text.startswith(text) for text, one in zip(written, ours, strict=True))
    assert run_command(["export", str(small_run), str(out), "--to", "huggingface"]) == 2
    assert "is there already" in capsys.readouterr().err
    for options in (["--quantization", "int8"], ["--check", "dev.tsv"]):
        assert run_command(["export", str(small_run), str(tmp_path / "x"), "--to", "huggingface", *options]) == 2

        assert "--to huggingface writes float32 weights" in capsys.readouterr().err
