"""Hugging Face's folders become runs that write what `transformers` writes."""

import json
import shutil

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.attention.points import points_of, recording
from translucid.ground.errors import UserError
from translucid.inspection.lens import state_points
from translucid.interop.huggingface import _added
from translucid.interop.importing import import_model
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

TEXTS = [*sentences()[0][:8], "I ☃ like", "¿ él", "it's 3.14, isn't it?"]
KINDS = ["swish", "languages", "m2m", "nllb", "untied relu", "untied apart gelu", "untied m2m"]


class Opened:
    """A folder as `transformers` and as we open it."""

    def __init__(self, folder, run, kind):
        self.kind, self.folder, self.run = kind, folder, run
        self.many = kind in ("m2m", "nllb", "untied m2m")
        changes = {"tie_word_embeddings": False} if "untied" in kind else {}
        if self.many:
            self.theirs = many_languages_folder(folder, nllb=kind == "nllb", **changes)
            self.languages = ("eng_Latn", "spa_Latn") if kind == "nllb" else ("en", "es")
        else:
            several = kind == "languages"
            activation = next((name for name in ("relu", "gelu") if name in kind), "swish")
            if "apart" in kind:
                changes["share_encoder_decoder_embeddings"] = False
            self.theirs = marian_folder(
                folder, activation=activation, languages=("es", "pt") if several else (), **changes
            )
            if "apart" in kind:
                shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
            self.languages = (None, "pt") if several else (None, None)
        if "untied" in kind:
            in_shards(self.theirs, folder)
        import_model(folder, run)
        source, target = self.languages
        self.ours = Translator.load(run, "cpu", "torch", source=source, target=target)

    def their_ids(self, texts):
        """Source ids, and what a decoder begins with, by their own rules written out."""
        config = self.theirs.config
        if self.many:
            processor = sentencepiece.SentencePieceProcessor(model_file=str(self.folder / "sentencepiece.bpe.model"))
            first = 4 + processor.get_piece_size() - 3
            rows = [[1 + processor.piece_to_id(p) for p in processor.encode(text, out_type=str)] for text in texts]
            return [[first, *(row if row > 1 else 3 for row in ids), 2] for ids in rows], [2, first + 1]
        processor = sentencepiece.SentencePieceProcessor(model_file=str(self.folder / "source.spm"))
        vocabulary = json.loads((self.folder / "vocab.json").read_text())
        told = [vocabulary[">>pt<<"]] if self.kind == "languages" else []
        cut = ([vocabulary.get(p, 1) for p in processor.encode(text, out_type=str)] for text in texts)
        return [[*told, *ids, 0] for ids in cut], [config.decoder_start_token_id]

    def our_ids(self, texts):
        return [[*ids, 3] for ids in self.ours.tokenizer.encode_source(texts)]


def in_shards(model, folder):
    """Write the weights in several files, as large models have them."""
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("model-*.safetensors")]) > 1


@pytest.fixture(scope="module", params=KINDS)
def opened(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    return Opened(place / "theirs", place / "run", request.param)


def columns(opened):
    """Which of our target ids is which row of theirs."""
    config = opened.theirs.config
    end, unknown = config.eos_token_id, 1 if "arian" in type(opened.theirs).__name__ else 3
    special = {config.pad_token_id, end, unknown, config.decoder_start_token_id}
    rest = [row for row in range(config.vocab_size) if row not in special]
    return {unknown: 1, end: 3} | {row: 4 + i for i, row in enumerate(rest)}


def test_texts_become_the_same_tokens_and_tokens_the_same_logits(opened):
    ids, begin = opened.their_ids(TEXTS)
    ours = opened.our_ids(TEXTS)
    place = columns(opened)
    unknown = next(row for row, mine in place.items() if mine == 1)
    rows = torch.tensor([*place])
    for theirs, mine in zip(ids, ours, strict=True):
        size = len(place) + 2  # what only SentencePiece knows has a row of its own behind all others
        assert [1 if i >= size else i for i in mine] == [1 if row == unknown else place[row] for row in theirs]
        written = [*begin, *theirs[1:4]]
        with torch.inference_mode():
            wanted = opened.theirs(input_ids=torch.tensor([theirs]), decoder_input_ids=torch.tensor([written])).logits
            found = opened.ours.model(torch.tensor([mine]), torch.tensor([[2, *(place[row] for row in written[1:])]]))
        torch.testing.assert_close(
            found[..., [place[row] for row in rows.tolist()]], wanted[..., rows], atol=1e-4, rtol=0
        )


def test_named_states_are_the_hidden_states_of_transformers(opened):
    ids, begin = opened.their_ids(TEXTS)
    place = columns(opened)
    theirs, mine = ids[0], opened.our_ids(TEXTS)[0]
    written = [*begin, *theirs[1:4]]
    model = opened.ours.model
    with torch.inference_mode():
        wanted = opened.theirs(
            input_ids=torch.tensor([theirs]), decoder_input_ids=torch.tensor([written]), output_hidden_states=True
        )
        with recording(model, list(points_of(model))) as record:
            model(torch.tensor([mine]), torch.tensor([[2, *(place[row] for row in written[1:])]]))
    for side, hidden in (("encoder", wanted.encoder_hidden_states), ("decoder", wanted.decoder_hidden_states)):
        points = list(state_points(model, side).values())
        assert len(points) == len(hidden)
        # Theirs are the states before the first layer, after each layer, and the last one after the final norm.
        for point, states in zip([*points[:-1], f"{side}.output"], hidden, strict=True):
            torch.testing.assert_close(record[point], states, atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_same_is_written(opened, beam):
    ids, begin = opened.their_ids(TEXTS)
    place, config = columns(opened), opened.theirs.config
    never = [[row] for row in range(config.vocab_size) if row not in place or place[row] == 1]
    forced = {"forced_bos_token_id": begin[1]} if len(begin) > 1 else {}
    options = opened.ours.configuration.decoding.model_copy(
        update={"beam": beam, "length_penalty": 0.0, "max_loops": 0, "min_length": 0}
    )
    ended = 0
    for theirs, mine in zip(ids, opened.our_ids(TEXTS), strict=True):
        wanted = opened.theirs.generate(
            torch.tensor([theirs]),
            num_beams=beam,
            do_sample=False,
            length_penalty=0.0,
            early_stopping="never" if beam > 1 else False,
            max_new_tokens=2 * len(theirs) + 18,
            bad_words_ids=never,
            **forced,
        )[0].tolist()
        if wanted[-1] != config.eos_token_id:  # cut off, where we end an output
            continue
        ended += 1
        (found,) = opened.ours.torch_engine.decode([mine], options)[0]
        assert found.tokens == [place[row] for row in wanted[1:-1]]
    assert ended > 2


def test_ctranslate2_writes_it_too(opened):
    source, target = opened.languages
    other = Translator.load(opened.run, "cpu", "ctranslate2", source=source, target=target)
    wanted = opened.ours.translate(TEXTS, beam=1)
    found = other.translate(TEXTS, beam=1)
    assert [one.nbest[0].hypotheses[0].tokens for one in found] == [one.nbest[0].hypotheses[0].tokens for one in wanted]


def test_a_run_comes_of_it_that_needs_no_training_to_go_on(opened):
    assert not (opened.run / "state").exists()
    assert json.loads((opened.run / "provenance.jsonl").read_text())["imported"] == str(opened.folder)
    assert RunFolder(opened.run).configuration().preset is None


def test_languages_are_asked_for_and_can_be_changed(tmp_path):
    folder, run = tmp_path / "theirs", tmp_path / "run"
    many_languages_folder(folder, end=2.0)
    import_model(folder, run, source_language="en", target_language="es")
    spanish = Translator.load(run, "cpu", "torch")
    english = spanish.between("es", "en")
    assert english.model is spanish.model
    assert (
        english.translate(TEXTS[0]).nbest[0].hypotheses[0].tokens[0]
        != spanish.translate(TEXTS[0]).nbest[0].hypotheses[0].tokens[0]
    )
    with pytest.raises(
        UserError, match=r"does not have the target language 'fr'. Give --target-language, one of en, es\."
    ):
        spanish.between("en", "fr")
    import_model(folder, run, overwrite=True)
    with pytest.raises(UserError, match="needs the source language"):
        Translator.load(run, "cpu", "torch")


def test_a_model_of_one_pair_takes_no_other(tmp_path):
    marian_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run", source_language="en", target_language="es")
    with pytest.raises(UserError, match="one target language, es, and fr was asked for"):
        Translator.load(tmp_path / "run", "cpu", "torch", target="fr")
    assert Translator.load(tmp_path / "run", "cpu", "torch", target="es").configuration.data.languages == ("en", "es")


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda f: (f / "vocab.json").unlink(), "vocab.json: is missing"),
        (lambda f: (f / "vocab.json").write_text("["), "is not JSON"),
        (lambda f: (f / "vocab.json").write_text('{"a": 1}'), "has no piece <unk>"),
        (lambda f: (f / "vocab.json").write_text('{"<unk>": 1, "a": 99999999}'), "does not fit embeddings"),
        (lambda f: (f / "source.spm").write_bytes(b"nothing"), "is not a SentencePiece model"),
        (lambda f: (f / "model.safetensors").write_bytes(b"nothing" * 9), "is damaged"),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: changed(f, model_type="t5"), "model_type='t5' is not supported"),
        (lambda f: changed(f, activation_function="tanh"), "activation_function='tanh' is not supported"),
        (lambda f: changed(f, decoder_ffn_dim=48), "decoder_ffn_dim='48 unlike the encoder's' is not supported"),
        (lambda f: changed(f, encoder_layers=5), "is missing"),
        (lambda f: changed(f, d_model="wide"), "d_model is 'wide', not a whole number"),
        (lambda f: changed(f, d_model=1 << 14), "does not fit the model"),
        (lambda f: changed(f, dropout={}), "dropout is {}, not a number"),
        (lambda f: changed(f, dropout=float("nan")), "dropout is nan, not a number"),
        (lambda f: changed(f, num_beams=None), "num_beams is None, not a whole number"),
        (lambda f: pickled(f), "holds more than weights"),
        (lambda f: weights(f, "decoder.layers.0.self_attn.v_proj.weight", lambda w: w.view(32, 8)), "is damaged"),
        (lambda f: weights(f, "encoder.layers.0.self_attn.k_proj.bias", lambda w: w.fill_(float("nan"))), "not finite"),
        (lambda f: weights(f, "decoder.layers.0.fc1.weight", lambda w: w.fill_(float("-inf"))), "not finite"),
        (lambda f: weights(f, "encoder.layers.1.fc2.bias", lambda w: w.to(torch.int64)), "has no weights"),
        (lambda f: not_utf8(f / "target.spm"), "is damaged"),
    ],
)
def test_what_is_not_whole_is_one_line(tmp_path, broken_folder, break_it, said):
    folder = tmp_path / "theirs"
    shutil.copytree(broken_folder, folder)
    break_it(folder)
    with pytest.raises(UserError) as refused:
        import_model(folder, tmp_path / "run")
    assert said in str(refused.value).replace('"', "'")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("row", [0.0, 0.5])
def test_what_a_decoder_is_fed_first_is_theirs(tmp_path, row):
    """The row of padding, which is usually zero; a model may have learned another one."""
    theirs = marian_folder(tmp_path / "theirs")
    with torch.no_grad():
        theirs.model.shared.weight[theirs.config.decoder_start_token_id] = row
    theirs.save_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = Translator.load(tmp_path / "run", "cpu", "torch")
    assert ours.model.options.zero_start is (row == 0)
    unknown, end = 1, 0
    asked = {
        "input_ids": torch.tensor([[unknown, end]]),
        "decoder_input_ids": torch.tensor([[theirs.config.decoder_start_token_id]]),
    }
    with torch.inference_mode():
        wanted = theirs(**asked).logits[0, 0, [unknown, end]]
        found = ours.model(torch.tensor([[1, 3]]), torch.tensor([[2]]))[0, 0, [1, 3]]
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("file", "facts"),
    [
        (
            "tokenizer.json",
            {
                "added_tokens": [
                    {"content": "eng_Latn", "id": 90},
                    {"content": "<mask>", "id": 92},
                    {"content": "fra_Latn", "id": "93"},
                    "deu_Latn",
                    {"content": "spa_Latn", "id": 91},
                ]
            },
        ),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"90": {"content": "eng_Latn"}, "91": {"content": "spa_Latn"}, "x": {}, "92": 1}},
        ),
        # A list gives no rows: they follow one another, without those that are not of languages.
        ("special_tokens_map.json", {"additional_special_tokens": ["eng_Latn", "spa_Latn", "<mask>", {"content": 1}]}),
        ("tokenizer_config.json", {"extra_special_tokens": ["<mask>", 7, "eng_Latn", "spa_Latn"]}),
    ],
)
def test_the_rows_of_languages_are_read_from_any_file_of_a_tokenizer(tmp_path, file, facts):
    (tmp_path / file).write_text(json.dumps(facts))
    assert _added(tmp_path, 90) == {"eng_Latn": 90, "spa_Latn": 91}


def test_files_without_languages_are_passed_over(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"content": "<mask>", "id": 9}]}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": ["<mask>"]}))
    assert _added(tmp_path, 90) == {}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["__en__", "__es__"]}))
    assert _added(tmp_path, 90) == {"__en__": 90, "__es__": 91}


@pytest.fixture(scope="module")
def broken_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "theirs"
    marian_folder(folder)
    return folder


def changed(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def weights(folder, name, change):
    file, name = folder / "model.safetensors", f"model.{name}"
    tensors = load_file(file)
    tensors[name] = change(tensors[name].clone())
    save_file(tensors, file)


def not_utf8(file):
    """Damage a piece: its first letter becomes a byte that is no character."""
    content, space = file.read_bytes(), "▁".encode()
    place = content.index(space) + len(space)
    file.write_bytes(content[:place] + b"\xff" + content[place + 1 :])


def pickled(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"a": print}, folder / "pytorch_model.bin")


def test_weights_of_pytorchs_own_format_are_read_too(tmp_path):
    model = marian_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "one")
    (tmp_path / "theirs" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "theirs" / "pytorch_model.bin")
    import_model(tmp_path / "theirs", tmp_path / "other")
    one, other = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("one", "other"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_language_that_a_target_is_told_does_not_count_in_its_score(opened):
    source, target = TEXTS[0], sentences()[1][0]
    found = opened.ours.score(source, target)
    tokenizer = opened.ours.tokenizer
    (ids,), (asked,) = tokenizer.encode_source([source]), tokenizer.encode_target([target])
    told = len(tokenizer.target_opening)
    assert told == (opened.many)
    with torch.inference_mode():
        logits = opened.ours.model(torch.tensor([[*ids, 3]]), torch.tensor([[2, *asked]]))[0].double().log_softmax(-1)
    wanted = [logits[t, token].item() for t, token in enumerate([*asked, 3])][told:]
    assert found.tokens == [*asked, 3][told:]
    assert found.log_probabilities == pytest.approx(wanted, abs=1e-4)
    forced, _ = opened.ours.forced_scores([(source, target)])
    assert (forced.tokens, forced.perplexity) == (len(wanted), pytest.approx(found.perplexity, rel=1e-4))
