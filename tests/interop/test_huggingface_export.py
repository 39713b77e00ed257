"""Exported models are loaded by `transformers` and compute the same there."""

import json
from functools import cache

import pytest
import torch

from bitext.pair import Pair
from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.huggingface_export import M2M100, export_huggingface, sines_first
from translucid.interop.importing import import_model
from translucid.models.build import build_model
from translucid.runs.configuration import validated
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, load_weights

TEXTS = [*sentences()[0][:6], "I ☃ like", "it's 3.14, isn't it?"]
LONGEST = 24
"""Maximum number of tokens of an output, including both special tokens."""
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
def learn_tokenizer(**sizes):
    """Learn a tokenizer with these options."""
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    return Tokenizer.learn(pairs, TokenizerOptions(**sizes), seed=1)


def make_model(changes, *, joint=True, **data):
    """Return an untrained model with peaked predictions, its tokenizer and its configuration."""
    sizes = {"vocabulary": 150, "joint": joint, "kind": "unigram" if joint else "bpe"}
    settings = {"model": {"kind": "transformer", **SMALL, **changes}, "data": {"tokenizer": sizes, **data}}
    configuration = validated(settings)
    tokenizer = learn_tokenizer(**sizes)
    torch.manual_seed(1)
    model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.output.bias.data[:3] += 2  # make special tokens likely, though they must never be written
    engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    ids = [[*ids, SPECIAL.end] for ids in tokenizer.encode_source(TEXTS)]
    options = DecodingOptions(beam=1, max_loops=0, min_length=4, max_length_ratio=0, max_length_extra=LONGEST - 2)
    for _ in range(100):  # raise the end token's bias until half of the outputs end
        lengths = [len(hypothesis.tokens) for (hypothesis,) in engine.decode(SearchRequest(ids, options))]
        if sum(length < LONGEST - 3 for length in lengths) >= len(TEXTS) / 2:
            break
        model.output.bias.data[SPECIAL.end] += 1.5
    return model, tokenizer, configuration


def load_theirs(folder, **options):
    """Return the model and the tokenizer of a folder as loaded by `transformers`."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder, **options)


class Exported:
    """One of our models, and what `transformers` loads from its export."""

    def __init__(self, folder, model, tokenizer, configuration):
        self.model, self.tokenizer, self.folder = model, tokenizer, folder
        self.kind = export_huggingface(model, tokenizer, configuration, folder)
        self.theirs, self.their_tokenizer = load_theirs(folder)

    def target_row(self, our_id):
        rows = json.loads((self.folder / "vocab.json").read_text())
        if (self.folder / "target_vocab.json").exists():
            rows = json.loads((self.folder / "target_vocab.json").read_text())
        name = self.tokenizer.target_pieces([our_id])[0]
        return self.theirs.config.decoder_start_token_id if our_id == SPECIAL.start else rows[name]


@pytest.fixture(scope="module", params=KINDS)
def exported(request, tmp_path_factory):
    model, tokenizer, configuration = make_model(KINDS[request.param], joint="two" not in request.param)
    return Exported(tmp_path_factory.mktemp("given") / "out", model, tokenizer, configuration)


def test_the_class_is_the_one_with_such_norms(exported):
    pre = exported.model.options.norm == "pre"
    assert (
        exported.kind
        == type(exported.theirs).__name__
        == ("PegasusForConditionalGeneration" if pre else "MarianMTModel")
    )
    assert type(exported.their_tokenizer).__name__ == "MarianTokenizer"


def test_texts_become_the_same_pieces_and_pieces_the_same_logits(exported):
    batch = exported.their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    ours = [[*ids, SPECIAL.end] for ids in exported.tokenizer.encode_source(TEXTS)]
    targets = exported.tokenizer.encode_target([*sentences()[1][: len(TEXTS)]])
    token_ids = [i for i in range(exported.tokenizer.target_size) if i not in (SPECIAL.pad, SPECIAL.start)]
    for i, (ids, target) in enumerate(zip(ours, targets, strict=True)):
        theirs = batch.input_ids[i][: int(batch.attention_mask[i].sum())].tolist()
        names = {row: name for name, row in json.loads((exported.folder / "vocab.json").read_text()).items()}
        assert [names[row] for row in theirs] == exported.tokenizer.source_pieces(ids)
        decoder_ids = [exported.target_row(token) for token in (SPECIAL.start, *target)]
        with torch.inference_mode():
            expected = exported.model(torch.tensor([ids]), torch.tensor([[SPECIAL.start, *target]]))
            logits = exported.theirs(  # in a batch, to check that padding is ignored
                **batch, decoder_input_ids=torch.tensor([decoder_ids]).expand(len(TEXTS), -1)
            ).logits[i : i + 1]
        rows = [exported.target_row(token) for token in token_ids]
        torch.testing.assert_close(logits[..., rows], expected[..., token_ids], atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_generated_texts_are_the_same(exported, beam):
    batch = exported.their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    generated = exported.theirs.generate(
        **batch,
        num_beams=beam,
        length_penalty=0.0,
        early_stopping="never" if beam > 1 else False,
        min_new_tokens=4,
        max_length=LONGEST,
    )
    options = DecodingOptions(beam=beam, length_penalty=0.0, max_loops=0, min_length=4, max_length_ratio=9)
    engine = TorchEngine.of(exported.model, exported.tokenizer, torch.device("cpu"))
    ours = engine.decode(
        SearchRequest([[*ids, SPECIAL.end] for ids in exported.tokenizer.encode_source(TEXTS)], options)
    )
    finished = differing = 0
    for theirs, (mine, *_) in zip(generated.tolist(), ours, strict=True):
        end = exported.theirs.config.eos_token_id
        expected = [exported.target_row(token) for token in mine.tokens]
        if beam == 1:  # compare only as many tokens as they generate
            cut = LONGEST - 2
            assert theirs[1:][: len(expected[:cut])] == expected[:cut]
        if len(expected) < LONGEST - 2 and end in theirs[1 : LONGEST - 1]:
            finished += 1
            if theirs[1 : theirs.index(end, 1)] != expected:
                differing += 1
                continue
            written = exported.their_tokenizer.decode(theirs, skip_special_tokens=True)
            assert written.split() == exported.tokenizer.decode(mine.tokens).split()
    assert finished > 1
    assert differing <= (beam > 1)  # beam searches may differ in one of the eight texts


def test_an_exported_model_is_imported_as_the_same_run(exported, tmp_path):
    import_model(exported.folder, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    reimported = run.load_sequence_model(configuration, tokenizer)
    for name in ("norm", "nonlinearity", "zero_start", "tie_output", "scale_embeddings", *SMALL):
        assert getattr(configuration.model, name) == getattr(exported.model.options, name)
    ours, theirs = exported.tokenizer.encode_source(TEXTS), tokenizer.encode_source(TEXTS)
    assert [tokenizer.source_pieces(ids) for ids in theirs] == [exported.tokenizer.source_pieces(ids) for ids in ours]
    columns_by_piece = {name: i for i, name in enumerate(tokenizer.target_vocabulary)}
    columns = [columns_by_piece[name] for name in exported.tokenizer.target_vocabulary[3:]]
    for mine, their_ids in zip(ours, theirs, strict=True):
        with torch.inference_mode():
            expected = exported.model(torch.tensor([[*mine, 3]]), torch.tensor([[2, 3]]))[..., 3:]
            logits = reimported(torch.tensor([[*their_ids, 3]]), torch.tensor([[2, 3]]))[..., columns]
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_channels_have_no_order():
    model, _, configuration = make_model({"norm": "post"})
    halves = configuration.model.model_copy(update={"positions": "sinusoidal-halves"})
    variant = build_model(halves, 150, 150).eval()
    names = {name for name, _ in variant.named_parameters()}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name in names}
    load_weights(variant, sines_first(tensors, 16), "here")
    ids = torch.randint(4, 150, (2, 7))
    with torch.inference_mode():
        torch.testing.assert_close(variant(ids, ids), model(ids, ids), atol=1e-5, rtol=0)
        load_weights(variant, tensors, "here")
        assert (variant(ids, ids) - model(ids, ids)).abs().max() > 0.1


IMPORTED = {
    "marian": lambda folder: marian_folder(folder),
    "relu": lambda folder: marian_folder(folder, activation="relu"),
    "languages": lambda folder: marian_folder(folder, languages=("es", "pt")),
    "m2m": lambda folder: many_languages_folder(folder, codes=M2M100),
    "nllb": lambda folder: many_languages_folder(folder, nllb=True),
}


@pytest.fixture(scope="module", params=IMPORTED)
def round_trip(request, tmp_path_factory):
    """Load an imported folder and its re-export with `transformers`."""
    folder = tmp_path_factory.mktemp("returned")
    IMPORTED[request.param](folder / "first")
    import_model(folder / "first", folder / "run")
    run = RunFolder(folder / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    export_huggingface(run.load_sequence_model(configuration, tokenizer), tokenizer, configuration, folder / "last")
    languages = {"m2m": {"src_lang": "en"}, "nllb": {"src_lang": "eng_Latn"}}.get(request.param, {})
    return [load_theirs(folder / name, **languages) for name in ("first", "last")]


def test_an_imported_model_is_exported_unchanged(round_trip):
    (first, first_tokenizer), (last, last_tokenizer) = round_trip
    assert type(first_tokenizer) is type(last_tokenizer) and type(first) is type(last)
    texts = TEXTS
    if codes := getattr(first_tokenizer, "supported_language_codes", []):
        assert codes == last_tokenizer.supported_language_codes
        texts = [f"{codes[i % 2]} {text}" for i, text in enumerate(TEXTS)]
    batch, batch_again = (tokenizer(texts, return_tensors="pt", padding=True) for _, tokenizer in round_trip)
    assert torch.equal(batch.input_ids, batch_again.input_ids)
    decoder_ids = torch.cat(
        [torch.full((len(texts), 1), first.config.decoder_start_token_id), batch.input_ids[:, :4]], 1
    )
    with torch.inference_mode():
        first_logits, last_logits = (model(**batch, decoder_input_ids=decoder_ids).logits for model, _ in round_trip)
    torch.testing.assert_close(first_logits, last_logits, atol=1e-5, rtol=0)
    for beam in (1, 4):
        options = {"num_beams": beam, "max_length": 30, "do_sample": False}
        if "M2M" in type(first).__name__:
            spanish = "spa_Latn" if "Nllb" in type(first_tokenizer).__name__ else "__es__"
            options["forced_bos_token_id"] = first_tokenizer.convert_tokens_to_ids(spanish)
            assert options["forced_bos_token_id"] == last_tokenizer.convert_tokens_to_ids(spanish)
        never = last.generation_config.bad_words_ids
        generated = [
            model.generate(**batch, **options, bad_words_ids=never, length_penalty=1.0, forced_eos_token_id=None)
            for model, _ in round_trip
        ]
        assert torch.equal(*generated)
        texts_written = [
            tokenizer.batch_decode(rows, skip_special_tokens=True)
            for rows, (_, tokenizer) in zip(generated, round_trip, strict=True)
        ]
        assert texts_written[0] == texts_written[1]
    settings = (
        *("vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id", "max_position_embeddings"),
        *("d_model", "encoder_layers", "decoder_layers", "scale_embedding", "activation_function"),
    )
    for name in settings:
        assert getattr(first.config, name) == getattr(last.config, name), name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "learned"}, "no translator with model.positions=learned"),
        ({"positions": "none"}, "no translator with model.positions=none"),
        ({"positions": "sinusoidal-tensor2tensor", "norm": "post"}, "positions=sinusoidal-tensor2tensor"),
        ({"first_position": 1, "norm": "post"}, "MarianMTModel has no model.first_position=1"),
        ({"share_embeddings": False, "norm": "pre"}, "PegasusForConditionalGeneration has no model.share_embeddings"),
    ],
)
def test_unsupported_models_are_refused_in_one_line(tmp_path, changes, message):
    model, tokenizer, configuration = make_model(changes)
    with pytest.raises(UserError) as error:
        export_huggingface(model, tokenizer, configuration, tmp_path / "out")
    assert message in str(error.value) and "\n" not in str(error.value)
    assert [*tmp_path.iterdir()] == []


def test_m2m100_has_no_bias_and_its_own_languages(tmp_path):
    for codes, bias, message in ((M2M100, 1.0, "has learned one"), (("en", "es"), 0.0, "tokenizer knows other ones")):
        many_languages_folder(tmp_path / "theirs", codes=codes)
        import_model(tmp_path / "theirs", tmp_path / "run", overwrite=True)
        run = RunFolder(tmp_path / "run")
        configuration, tokenizer = run.configuration(), run.tokenizer()
        model = run.load_sequence_model(configuration, tokenizer)
        model.output.bias.data[9] += bias
        with pytest.raises(UserError, match=message):
            export_huggingface(model, tokenizer, configuration, tmp_path / "out")


def test_a_fine_tuned_m2m100_is_exported_again(corpus, tmp_path):
    many_languages_folder(tmp_path / "theirs", codes=M2M100)
    import_model(tmp_path / "theirs", tmp_path / "run", source_language="en", target_language="es")
    files = ["--train", str(corpus / "test.tsv"), "--valid", str(corpus / "test.tsv"), "--out", str(tmp_path / "mine")]
    limits = ["--no-tune", "--set", "training.max_steps=3", "training.warmup=1", "training.averaging=0"]
    assert run_command(["train", "--init-from", str(tmp_path / "run"), *files, *limits]) == 0
    assert run_command(["export", str(tmp_path / "mine"), str(tmp_path / "out"), "--to", "huggingface"]) == 0
    import_model(tmp_path / "out", tmp_path / "again")
    runs = [RunFolder(tmp_path / name) for name in ("mine", "again")]
    mine, reimported = (load_tensors(run.model_file)[0] for run in runs)
    # The start token shared the end token's row and was trained separately: it has its own row now, so others move.
    assert not torch.equal(*mine["source_embedding.tokens.weight"][[2, 3]])
    old_pieces, new_pieces = (run.tokenizer().target_pieces(range(len(mine["output.bias"]))) for run in runs)
    old_rows = [old_pieces.index(piece) for piece in new_pieces if not piece.startswith("<row")]
    new_rows = [row for row, piece in enumerate(new_pieces) if not piece.startswith("<row")]
    for name in mine:
        if "embedding" in name or name.startswith("output."):
            assert torch.equal(mine[name][old_rows], reimported[name][new_rows]), name
        else:
            assert torch.equal(mine[name], reimported[name]), name


def test_the_card_says_how_it_is_loaded(tmp_path):
    languages = {"source_language": "en", "target_language": "es"}
    export_huggingface(*make_model({"norm": "post"}, **languages), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert 'language: ["en", "es"]' in card and "# en to es" in card
    code = card.split("```python\n")[1].split("```")[0].replace('"."', repr(str(tmp_path / "out")))
    exec(compile(code, "card", "exec"), {})  # the code is our own


def test_a_trained_run_writes_there_what_it_writes_here(small_run, tmp_path, capsys):
    out = tmp_path / "out"
    assert run_command(["export", str(small_run), str(out), "--to", "huggingface"]) == 0
    assert "written" in capsys.readouterr().err
    model, tokenizer = load_theirs(out)
    translator = Translator.load(small_run, "cpu", "torch")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    their_texts = tokenizer.batch_decode(model.generate(**batch, num_beams=1, max_length=12), skip_special_tokens=True)
    translations = translator.translate(TEXTS, beam=1, max_loops=0, max_length_ratio=0.0, max_length_extra=12)
    assert all(translation.text.startswith(text) for text, translation in zip(their_texts, translations, strict=True))
    assert run_command(["export", str(small_run), str(out), "--to", "huggingface"]) == 2
    assert "is there already" in capsys.readouterr().err
    for options in (["--quantization", "int8"], ["--check", "dev.tsv"]):
        assert run_command(["export", str(small_run), str(tmp_path / "x"), "--to", "huggingface", *options]) == 2

        assert "--to huggingface writes float32 weights" in capsys.readouterr().err
