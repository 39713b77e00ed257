"""The precedence of settings and the messages about wrong ones."""

import pytest
import yaml

from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve, resumed, validated
from translucid.runs.presets import all_presets


@pytest.mark.parametrize("preset", all_presets())
def test_presets_resolve_and_survive_yaml(preset):
    configuration = resolve(preset=preset)
    values = yaml.safe_load(configuration.to_yaml())
    assert validated(values) == configuration
    assert [*values] == [*type(configuration).model_fields]  # in this order, for readers


def test_later_wins(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("preset: tiny\nmodel: {width: 64}\ntraining: {seed: 5}\n")
    configuration = resolve(file, None, ["training.seed=6", "data.source_language=en"], {"data.train": ["x.tsv"]})
    assert configuration.model.width == 64
    assert configuration.model.feed_forward == all_presets()["tiny"].settings["model"]["feed_forward"]
    assert configuration.training.seed == 6
    assert configuration.data.train == ["x.tsv"]
    assert resolve(file, "base").model.width == 64
    assert resolve(file, "base").model.encoder_layers == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle: {width: 3}", r"c\.yaml: there is no key 'modle'. Did you mean 'model'"),
        ("model: {widht: 3}", r"no key 'model\.widht'. Did you mean 'model\.width'"),
        (
            "data: {tokenizer: {vocab: 3}}",
            r"no key 'data\.tokenizer\.vocab'. Did you mean 'data\.tokenizer\.vocabulary'",
        ),
        ("training: {seed: many}", r"training\.seed: .*'many'"),
        ("training: {warmup: 0}", r"training\.warmup: .*greater than or equal to 1"),
        ("preset: tinny", "Did you mean 'tiny'"),
        ("a: b: c", r"c\.yaml:1: not valid YAML"),
        ("just text", "holds no settings"),
        ("", "holds no settings"),
        ("data: {tokenizer: {joint: false}}", "model.share_embeddings needs one joint vocabulary"),
        ("preset: [tiny]", r"preset: .*valid string, not \['tiny'\]"),
        ("training:\n  seed: " + "9" * 5000, r"c\.yaml:2: not valid YAML: a value is not of the kind"),
        ("training: {seed: 0x" + "f" * 5000 + "}", "training.seed: .*such a long number"),
        ("training: {seed: 2001-99-99}", r"c\.yaml:1: not valid YAML: a value is not of the kind"),
        ("training: {seed: !!int }", "a value is not of the kind"),
        ("training: {learning_rate: .nan}", r"training\.learning_rate: .*finite number, not nan"),
        ("training: {max_minutes: .inf}", r"training\.max_minutes: .*finite number, not inf"),
        ('versions: {"a\\nb": 3}', r"versions\.a\\nb: "),
        ("model: {width: " + "[" * 5000, "nested too deeply"),
        ("model: &m {width: 8}\ndata: *m", r"c\.yaml:2: not valid YAML: aliases"),
        ("#" * 2_000_000, "more than 1,048,576 bytes"),
        ("data: {max_tokens: 1000000}", r"data\.max_tokens: .*less than or equal to 16384, not 1000000"),
        ("training: {batch_tokens: 10000000000}", r"training\.batch_tokens: .*less than or equal to 1048576"),
        ("data: {tokenizer: {vocabulary: 10000000000}}", r"data\.tokenizer\.vocabulary: .*less than or equal to"),
    ],
)
def test_errors_are_reported_in_one_line(tmp_path, text, message):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        resolve(file)
    assert "\n" not in str(caught.value)


def test_ten_billion_values_in_ten_lines_are_not_unfolded(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    (tmp_path / "bomb.yaml").write_text("\n".join([*lines, "versions: *a9"]))
    with pytest.raises(UserError, match=r"bomb\.yaml:2: not valid YAML: aliases"):
        resolve(tmp_path / "bomb.yaml")
    with pytest.raises(UserError, match="is not YAML"):
        resolve(assignments=["versions=[&a [x], *a]"])


def test_a_resumed_run_may_go_on_longer_but_not_become_another():
    configuration = resolve(preset="tiny")
    assert resumed(configuration, ["training.max_steps=9"], {}).training.max_steps == 9
    for change in ("model.width=64", "data.tokenizer.vocabulary=99", "training.seed=2", "training.batch_tokens=1"):
        with pytest.raises(UserError, match="can't change in a resumed run"):
            resumed(configuration, [change], {})


@pytest.mark.parametrize("key", ["source_language", "target_language"])
def test_a_language_does_not_command_a_terminal(key):
    assert getattr(resolve(overrides={f"data.{key}": "Old English"}).data, key) == "Old English"
    for unsafe in ("en\x1b[2J", "e\nn", "e\u202en"):
        with pytest.raises(UserError, match=key) as refused:
            resolve(overrides={f"data.{key}": unsafe})
        assert str(refused.value).isprintable()


def test_a_vocabulary_is_given_by_the_user_or_proposed_by_a_preset(tmp_path):
    settings = tmp_path / "mine.yaml"
    settings.write_text("data: {tokenizer: {vocabulary: 300}}")
    assert not resolve(preset="tiny").vocabulary_given and not resolve().vocabulary_given
    assert not resolve(preset="tiny").with_vocabulary(99).vocabulary_given  # copies keep this
    assert not resolve(settings, is_recipe=True).vocabulary_given
    assert resolve(settings).vocabulary_given
    assert resolve(preset="tiny", assignments=["data.tokenizer.vocabulary=300"]).vocabulary_given
    # A run that ended before it learned a vocabulary saved such a configuration.
    reloaded = validated(resolve(preset="tiny").model_dump())
    assert not reloaded.vocabulary_given and validated({"data": {"tokenizer": {"vocabulary": 70}}}).vocabulary_given
    same = resolve(preset="tiny", assignments=["data.tokenizer.vocabulary=300"])
    assert resolve(preset="tiny").with_vocabulary(300) == same
