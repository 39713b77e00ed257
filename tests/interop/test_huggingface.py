"""Imported Hugging Face models write what `transformers` writes."""

import json
import shutil

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.attention.points import points_of, recording
from translucid.decoding.decoding_options import SearchRequest
from translucid.ground.errors import UserError
from translucid.inspection.lens import state_points
from translucid.interop.huggingface import _read_language_rows
from translucid.interop.importing import import_model
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

TEXTS = [*sentences()[0][:8], "I ☃ like", "¿ él", "it's 3.14, isn't it?"]
KINDS = ["swish", "languages", "m2m", "nllb", "untied relu", "untied apart gelu", "untied m2m"]


class Imported:
    """A folder as loaded by `transformers` and as imported by us."""

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
            save_in_shards(self.theirs, folder)
        import_model(folder, run)
        source, target = self.languages
        self.ours = Translator.load(run, "cpu", "torch", source=source, target=target)

    def their_ids(self, texts):
        """Return source ids and the decoder's first ids, by an independent implementation of their rules."""
        config = self.theirs.config
        if self.many:
            processor = sentencepiece.SentencePieceProcessor(model_file=str(self.folder / "sentencepiece.bpe.model"))
            first = 4 + processor.get_piece_size() - 3

            def row_of(piece):
                row = 1 + processor.piece_to_id(piece)
                return row if row > 1 else 3  # SentencePiece's 0 is the unknown piece

            pieces = processor.encode(texts, out_type=str)
            return [[first, *map(row_of, text_pieces), 2] for text_pieces in pieces], [2, first + 1]
        processor = sentencepiece.SentencePieceProcessor(model_file=str(self.folder / "source.spm"))
        vocabulary = json.loads((self.folder / "vocab.json").read_text())
        language_ids = [vocabulary[">>pt<<"]] if self.kind == "languages" else []
        ids = []
        for pieces in processor.encode(texts, out_type=str):
            piece_ids = [vocabulary.get(piece, 1) for piece in pieces]
            ids.append([*language_ids, *piece_ids, 0])
        return ids, [config.decoder_start_token_id]

    def our_ids(self, texts):
        return [[*ids, 3] for ids in self.ours.tokenizer.encode_source(texts)]


def save_in_shards(model, folder):
    """Save the weights in several files, as for large models."""
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("model-*.safetensors")]) > 1


@pytest.fixture(scope="module", params=KINDS)
def imported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return Imported(folder / "theirs", folder / "run", request.param)


def columns_by_row(imported):
    """Map the rows of their vocabulary to our target ids."""
    config = imported.theirs.config
    end, unknown = config.eos_token_id, 1 if "arian" in type(imported.theirs).__name__ else 3
    special = {config.pad_token_id, end, unknown, config.decoder_start_token_id}
    rest = [row for row in range(config.vocab_size) if row not in special]
    return {unknown: 1, end: 3} | {row: 4 + i for i, row in enumerate(rest)}


def test_texts_become_the_same_tokens_and_tokens_the_same_logits(imported):
    ids, begin = imported.their_ids(TEXTS)
    ours = imported.our_ids(TEXTS)
    columns = columns_by_row(imported)
    rows = torch.tensor([*columns])
    for theirs, mine in zip(ids, ours, strict=True):
        size = len(columns) + 2  # pieces that only SentencePiece knows get rows of their own after all others
        in_vocabulary = torch.tensor(mine) < size
        known_ids = torch.tensor(mine).where(in_vocabulary, 1)  # 1 is the unknown piece
        assert known_ids.tolist() == [columns[row] for row in theirs]
        decoder_ids = [*begin, *theirs[1:4]]
        with torch.inference_mode():
            expected = imported.theirs(
                input_ids=torch.tensor([theirs]), decoder_input_ids=torch.tensor([decoder_ids])
            ).logits
            logits = imported.ours.model(
                torch.tensor([mine]), torch.tensor([[2, *(columns[row] for row in decoder_ids[1:])]])
            )
        torch.testing.assert_close(
            logits[..., [columns[row] for row in rows.tolist()]], expected[..., rows], atol=1e-4, rtol=0
        )


def test_named_states_are_the_hidden_states_of_transformers(imported):
    ids, begin = imported.their_ids(TEXTS)
    columns = columns_by_row(imported)
    theirs, mine = ids[0], imported.our_ids(TEXTS)[0]
    decoder_ids = [*begin, *theirs[1:4]]
    model = imported.ours.model
    with torch.inference_mode():
        expected = imported.theirs(
            input_ids=torch.tensor([theirs]), decoder_input_ids=torch.tensor([decoder_ids]), output_hidden_states=True
        )
        with recording(model, list(points_of(model))) as record:
            model(torch.tensor([mine]), torch.tensor([[2, *(columns[row] for row in decoder_ids[1:])]]))
    for side, hidden_states in (
        ("encoder", expected.encoder_hidden_states),
        ("decoder", expected.decoder_hidden_states),
    ):
        points = list(state_points(model, side).values())
        assert len(points) == len(hidden_states)
        # Theirs are the states before the first layer, after each layer, and the last state after the final norm.
        for point, states in zip([*points[:-1], f"{side}.output"], hidden_states, strict=True):
            torch.testing.assert_close(record[point], states, atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_generated_texts_are_the_same(imported, beam):
    ids, begin = imported.their_ids(TEXTS)
    columns, config = columns_by_row(imported), imported.theirs.config
    bad_words = [[row] for row in range(config.vocab_size) if row not in columns or columns[row] == 1]
    forced = {"forced_bos_token_id": begin[1]} if len(begin) > 1 else {}
    options = imported.ours.configuration.decoding.model_copy(
        update={"beam": beam, "length_penalty": 0.0, "max_loops": 0, "min_length": 0}
    )
    finished = 0
    for theirs, mine in zip(ids, imported.our_ids(TEXTS), strict=True):
        expected = imported.theirs.generate(
            torch.tensor([theirs]),
            num_beams=beam,
            do_sample=False,
            length_penalty=0.0,
            early_stopping="never" if beam > 1 else False,
            max_new_tokens=2 * len(theirs) + 18,
            bad_words_ids=bad_words,
            **forced,
        )[0].tolist()
        if expected[-1] != config.eos_token_id:  # cut off at the limit, where we would end the output
            continue
        finished += 1
        (hypothesis,) = imported.ours.torch_engine.decode(SearchRequest([mine], options))[0]
        assert hypothesis.tokens == [columns[row] for row in expected[1:-1]]
    assert finished > 2


def test_ctranslate2_generates_the_same_texts(imported):
    source, target = imported.languages
    their_translator = Translator.load(imported.run, "cpu", "ctranslate2", source=source, target=target)
    expected = imported.ours.translate(TEXTS, beam=1)
    translations = their_translator.translate(TEXTS, beam=1)
    assert [translation.nbest[0].hypotheses[0].tokens for translation in translations] == [
        translation.nbest[0].hypotheses[0].tokens for translation in expected
    ]


def test_an_imported_run_works_without_training(imported):
    assert not (imported.run / "state").exists()
    assert json.loads((imported.run / "provenance.jsonl").read_text())["imported"] == str(imported.folder)
    assert RunFolder(imported.run).configuration().preset is None


def test_languages_are_required_and_can_be_changed(tmp_path):
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
    with pytest.raises(UserError, match=r"does not have the target language 'fr'. Give `target`, one of en, es\."):
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
    ("damage", "message"),
    [
        (lambda f: (f / "vocab.json").unlink(), "vocab.json: is missing"),
        (lambda f: (f / "vocab.json").write_text("["), "is not JSON"),
        (lambda f: (f / "vocab.json").write_text('{"a": 1}'), "has no piece <unk>"),
        (lambda f: (f / "vocab.json").write_text('{"<unk>": 1, "a": 99999999}'), "does not fit embeddings"),
        (lambda f: (f / "source.spm").write_bytes(b"nothing"), "is not a SentencePiece model"),
        (lambda f: (f / "model.safetensors").write_bytes(b"nothing" * 9), "is damaged"),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: change_config(f, model_type="t5"), "model_type='t5' is not supported"),
        (lambda f: change_config(f, activation_function="tanh"), "activation_function='tanh' is not supported"),
        (lambda f: change_config(f, decoder_ffn_dim=48), "decoder_ffn_dim='48 unlike the encoder's' is not supported"),
        (lambda f: change_config(f, encoder_layers=5), "is missing"),
        (lambda f: change_config(f, d_model="wide"), "d_model is 'wide', not a whole number"),
        (lambda f: change_config(f, d_model=1 << 14), "does not fit the model"),
        (lambda f: change_config(f, dropout={}), "dropout is {}, not a number"),
        (lambda f: change_config(f, dropout=float("nan")), "dropout is nan, not a number"),
        (lambda f: change_config(f, num_beams=None), "num_beams is None, not a whole number"),
        (lambda f: pickle_weights(f), "holds more than weights"),
        (
            lambda f: change_weights(f, "decoder.layers.0.self_attn.v_proj.weight", lambda w: w.view(32, 8)),
            "is damaged",
        ),
        (
            lambda f: change_weights(f, "encoder.layers.0.self_attn.k_proj.bias", lambda w: w.fill_(float("nan"))),
            "not finite",
        ),
        (lambda f: change_weights(f, "decoder.layers.0.fc1.weight", lambda w: w.fill_(float("-inf"))), "not finite"),
        (lambda f: change_weights(f, "encoder.layers.1.fc2.bias", lambda w: w.to(torch.int64)), "has no weights"),
        (lambda f: break_utf8(f / "target.spm"), "is damaged"),
    ],
)
def test_incomplete_folders_are_refused_in_one_line(tmp_path, broken_folder, damage, message):
    folder = tmp_path / "theirs"
    shutil.copytree(broken_folder, folder)
    damage(folder)
    with pytest.raises(UserError) as error:
        import_model(folder, tmp_path / "run")
    assert message in str(error.value).replace('"', "'")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("row", [0.0, 0.5])
def test_the_first_decoder_input_is_the_one_of_transformers(tmp_path, row):
    """The row of padding is usually zero, but a model may have learned a different one."""
    theirs = marian_folder(tmp_path / "theirs")
    with torch.no_grad():
        theirs.model.shared.weight[theirs.config.decoder_start_token_id] = row
    theirs.save_pretrained(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours = Translator.load(tmp_path / "run", "cpu", "torch")
    assert ours.model.options.zero_start is (row == 0)
    unknown, end = 1, 0
    inputs = {
        "input_ids": torch.tensor([[unknown, end]]),
        "decoder_input_ids": torch.tensor([[theirs.config.decoder_start_token_id]]),
    }
    with torch.inference_mode():
        expected = theirs(**inputs).logits[0, 0, [unknown, end]]
        logits = ours.model(torch.tensor([[1, 3]]), torch.tensor([[2]]))[0, 0, [1, 3]]
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


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
        # A list gives no row numbers: languages get consecutive rows, and other tokens get none.
        ("special_tokens_map.json", {"additional_special_tokens": ["eng_Latn", "spa_Latn", "<mask>", {"content": 1}]}),
        ("tokenizer_config.json", {"extra_special_tokens": ["<mask>", 7, "eng_Latn", "spa_Latn"]}),
    ],
)
def test_the_rows_of_languages_are_read_from_any_file_of_a_tokenizer(tmp_path, file, facts):
    (tmp_path / file).write_text(json.dumps(facts))
    assert _read_language_rows(tmp_path, 90) == {"eng_Latn": 90, "spa_Latn": 91}


def test_files_without_languages_are_passed_over(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"content": "<mask>", "id": 9}]}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": ["<mask>"]}))
    assert _read_language_rows(tmp_path, 90) == {}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["__en__", "__es__"]}))
    assert _read_language_rows(tmp_path, 90) == {"__en__": 90, "__es__": 91}


@pytest.fixture(scope="module")
def broken_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "theirs"
    marian_folder(folder)
    return folder


def change_config(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def change_weights(folder, name, change):
    file, name = folder / "model.safetensors", f"model.{name}"
    tensors = load_file(file)
    tensors[name] = change(tensors[name].clone())
    save_file(tensors, file)


def break_utf8(file):
    """Damage a piece: replace its first letter by a byte that is not valid UTF-8."""
    content, space = file.read_bytes(), "▁".encode()
    start = content.index(space) + len(space)
    file.write_bytes(content[:start] + b"\xff" + content[start + 1 :])


def pickle_weights(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"a": print}, folder / "pytorch_model.bin")


def test_weights_of_pytorchs_own_format_are_read_too(tmp_path):
    model = marian_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "one")
    (tmp_path / "theirs" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "theirs" / "pytorch_model.bin")
    import_model(tmp_path / "theirs", tmp_path / "other")
    from_safetensors, from_pickle = (
        load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("one", "other")
    )
    assert from_safetensors.keys() == from_pickle.keys() and all(
        torch.equal(from_safetensors[name], from_pickle[name]) for name in from_safetensors
    )


def test_the_language_token_of_a_target_does_not_count_in_its_score(imported):
    source, target = TEXTS[0], sentences()[1][0]
    score = imported.ours.inspector.score(source, target)
    tokenizer = imported.ours.tokenizer
    (ids,), (target_ids,) = tokenizer.encode_source([source]), tokenizer.encode_target([target])
    opening_length = len(tokenizer.target_opening)
    assert opening_length == (imported.many)
    with torch.inference_mode():
        logits = (
            imported.ours.model(torch.tensor([[*ids, 3]]), torch.tensor([[2, *target_ids]]))[0].double().log_softmax(-1)
        )
    expected = [logits[t, token].item() for t, token in enumerate([*target_ids, 3])][opening_length:]
    assert score.tokens == [*target_ids, 3][opening_length:]
    assert score.log_probabilities == pytest.approx(expected, abs=1e-4)
    forced, _ = imported.ours.inspector.forced_scores([(source, target)])
    assert (forced.tokens, forced.perplexity) == (len(expected), pytest.approx(score.perplexity, rel=1e-4))
