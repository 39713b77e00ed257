"""Options from the environment, log lines in JSON, shell completion and the list of settings."""

import json
import math
from types import SimpleNamespace

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from tests.probes.forked import forked
from translucid.cli import environment, main
from translucid.ground import console
from translucid.ground.console import Console, progress_bar
from translucid.runs.keys import keys
from translucid.runs.presets import all_presets, recipes


@pytest.fixture(autouse=True)
def _reset_log_format():
    yield
    Console.log_format = "text"


def leaves(command, path):
    for name, subcommand in command.commands.items():
        if isinstance(subcommand, TyperGroup):
            yield from leaves(subcommand, (*path, name))
        else:
            yield (*path, name), subcommand


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_option_of_every_command_has_a_variable_of_its_own_that_its_help_tells_how_to_name():
    variables = []
    for path, command in leaves(main.tree(), ("translucid",)):
        options = [p for p in command.params if isinstance(p, TyperOption)]
        for option in options:
            first = option.envvar if isinstance(option.envvar, str) else option.envvar[0]
            variables.append((first, option.opts))
        if path[-1] != "serve" and options:  # its help lists each variable
            variable = command.epilog.split("`")[3]
            assert variable in {first for first, _ in variables}
            assert command.epilog.split("`")[1].strip("-").replace("-", "_").upper() in variable
    assert ("TRANSLUCID_TRANSLATE_RERANK_WITH", ["--rerank-with"]) in variables
    assert ("TRANSLUCID_DATA_STATS_SKIP_BAD", ["--skip-bad"]) in variables
    assert ("TRANSLUCID_HOST", ["--host"]) in variables  # the option sets its own name
    assert len({first for first, _ in variables}) == len(variables)


def test_the_environment_gives_what_the_command_does_not(small_run, capfd, monkeypatch):
    monkeypatch.setenv("TRANSLUCID_TRANSLATE_FORMAT", "jsonl")
    monkeypatch.setenv("TRANSLUCID_ENGINE", "torch")
    assert main.run(["translate", str(small_run), "Good morning"]) == 0
    assert json.loads(capfd.readouterr().out)["source"] == "Good morning"
    assert main.run(["translate", str(small_run), "Good morning", "--format", "text"]) == 0
    assert not capfd.readouterr().out.startswith("{")
    monkeypatch.setenv("TRANSLUCID_ENGINE", "abacus")
    assert main.run(["translate", str(small_run), "Good morning"]) == 2
    assert "abacus" in capfd.readouterr().err


def test_an_option_of_several_values_has_them_apart_by_spaces(monkeypatch):
    app = typer.Typer()
    values = []

    @app.command()
    def one(train: list[str] = typer.Option([])):  # noqa: B008
        values.extend(train)

    command = typer.main.get_command(app)
    environment.apply_environment(command)
    monkeypatch.setenv("TRANSLUCID_TRAIN", "a.tsv b.tsv")
    command([], standalone_mode=False)
    assert values == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize(
    ("command", "name", "value", "message"),
    [
        ("serve", "TRANSLUCID_API_KEY", "keys.txt", "Did you mean 'TRANSLUCID_API_KEYS'?"),
        ("serve", "TRANSLUCID_API_KEYS", "", "TRANSLUCID_API_KEYS is empty"),
        ("translate", "TRANSLUCID_API_KEYS", " ", "TRANSLUCID_API_KEYS is empty"),
        ("translate", "TRANSLUCID_TRANSLATE_BEEM", "8", "Did you mean 'TRANSLUCID_TRANSLATE_BEAM'?"),
        ("data stats", "TRANSLUCID_DATE", "corpora", "Did you mean 'TRANSLUCID_DATA'?"),
        (
            "serve",
            "TRANSLUCID_PORT",
            "tcp://10.0.0.1:5000",
            "the Service named translucid. Set enableServiceLinks: false",
        ),
        ("serve", "TRANSLUCID_PORT_X", "1", "there is no environment variable TRANSLUCID_PORT_X"),
        # Variables that Kubernetes adds, or that another command reads, are none of this command's concern.
        ("translate", "TRANSLUCID_PORT", "tcp://10.0.0.1:5000", None),
        ("serve", "TRANSLUCID_WEB_PORT", "tcp://10.0.0.1:80", None),
        ("serve", "TRANSLUCID_SERVICE_PORT_HTTP", "5000", None),
        ("serve", "TRANSLUCID_PORT_5000_TCP_ADDR", "10.0.0.1", None),
        ("serve", "TRANSLUCID_DATA", "corpora", None),
    ],
)
def test_every_variable_with_our_prefix_is_known_and_has_a_value(command, name, value, message, capfd, monkeypatch):
    monkeypatch.setenv(name, value)
    assert main.run([*command.split(), "nowhere"]) == 2  # no such run or corpus either
    stderr = capfd.readouterr().err
    assert stderr.count("\n") == 1
    assert (message or "nowhere") in stderr
    assert message or name not in stderr
    assert main.run([*command.split(), "--help"]) == 0


@pytest.mark.parametrize(
    "before",
    [["--log-format", "json"], ["--log-format=json"], []],
    ids=["apart", "joined", "behind"],
)
def test_messages_and_warnings_come_as_json_lines(small_run, capfd, before):
    after = [] if before else ["--log-format", "json"]
    assert main.run([*before, "translate", str(small_run), "He has %s", "--engine", "torch", *after]) == 0
    output = capfd.readouterr()
    assert len(output.out.splitlines()) == 1
    lines = records(output.err)
    assert {line["level"] for line in lines} == {"info", "warning"}
    assert [(line["done"], line["total"]) for line in lines if line["message"] == "translating"][-1][0] == 1
    assert all(line["time"].endswith("+00:00") for line in lines)


def test_errors_do_too_and_the_variable_counts(capfd, monkeypatch):
    monkeypatch.setenv("TRANSLUCID_LOG_FORMAT", "json")
    assert main.run(["translate", "nowhere", "a"]) == 2
    assert main.run(["translate", "nowhere", "--nonsense"]) == 2
    first, second = records(capfd.readouterr().err)
    assert first["level"] == second["level"] == "error"
    assert "nowhere" in first["message"] and "--nonsense" in second["message"]
    assert main.run(["--log-format", "text", "translate", "nowhere", "a"]) == 2
    assert capfd.readouterr().err.startswith("error: nowhere")


def test_off_leaves_warnings_and_errors(small_run, capfd):
    assert main.run(["translate", str(small_run), "He has %s", "--log-format", "off"]) == 0
    stderr = capfd.readouterr().err
    assert stderr.startswith("warning: ") and stderr.count("\n") == 1


def test_unknown_log_formats_are_reported(capfd):
    assert main.run(["models", "--log-format", "xml"]) == 2
    assert "'xml'" in capfd.readouterr().err


def test_a_text_behind_the_dashes_is_a_text(small_run, capfd):
    assert main.run(["translate", str(small_run), "--", "--log-format", "json"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 2


def test_figures_stand_beside_the_message_and_standard_output_stays_as_it_is(capfd):
    Console.log_format = "json"
    Console(stderr=True).print("loss inf", figures={"loss": math.inf, "step": 3, "who": None})
    Console().print("loss inf", figures={"loss": math.inf})
    output = capfd.readouterr()
    (line,) = records(output.err)
    assert {name: line[name] for name in ("message", "loss", "step", "who")} == {
        "message": "loss inf",
        "loss": None,
        "step": 3,
        "who": None,
    }
    assert output.out == "loss inf\n"


def test_progress_is_logged_at_intervals_and_at_the_end(capfd, monkeypatch):
    Console.log_format = "json"
    times = iter([0.0, 0.5, 1.1, 1.1, 1.6, 9.0])
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with progress_bar(Console(stderr=True), "reading", 9) as advance:
        for _ in range(3):
            advance(3)
    assert [(line["done"], line["total"]) for line in records(capfd.readouterr().err)] == [(6, 9), (9, 9)]
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=iter([0.0, 1.1, 1.1, 9.0]).__next__))
    with progress_bar(Console(stderr=True), "reading", 9) as advance:
        advance(9)
    assert [line["done"] for line in records(capfd.readouterr().err)] == [9]  # reported once


def completions(shell, line, current):
    """Return the completions at the end of a line, requested as the script printed by `--show-completion` does."""
    request = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(current)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    variables = {**request, "_TRANSLUCID_COMPLETE": f"complete_{shell}"}
    return forked(environment=variables).communicate()[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_offered_the_presets(shell):
    suggestions = completions(shell, "translucid train --model rnn-luong-", 3)
    assert all(name in suggestions for name in all_presets() if name.startswith("rnn-luong-"))
    assert "rnn-bahdanau" not in suggestions


def test_recipes_settings_and_choices_are_offered_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("")
    assert set(completions("bash", "translucid train ", 2).split()) == {*recipes(), "mine.yaml"}
    assert completions("bash", "translucid train --set training.max_m", 3).split() == ["training.max_minutes="]
    assert completions("bash", "translucid translate runs/demo --engine ct", 4).split() == ["ctranslate2"]


def test_every_setting_is_listed_once_for_each_kind_that_has_it():
    settings = [(key.choice, key.name) for key in keys()]
    assert len(set(settings)) == len(settings) > 100
    assert ("model.kind=recurrent", "model.cell") in settings and ("", "training.seed") in settings
    assert {("", "preset"), ("", "model.kind"), ("model.kind=classifier", "model.language.kind")} <= {*settings}


def test_each_setting_says_which_values_it_takes():
    values = {(key.choice, key.name): key.allowed for key in keys()}
    assert all(values.values())
    assert values["", "training.optimizer"] == "adam | nadam | muon"
    assert values["", "training.cooldown"] == "a number from 0 to 1"
    assert values["", "training.label_smoothing"] == "a number from 0 below 1"
    assert values["", "training.max_steps"] == "a whole number from 1 to 1,000,000,000 | null"
    assert values["", "training.unfreeze"] == "true | false"
    assert values["", "training.freeze"] == "a list of: text"
    assert values["", "training.adapter_parts"] == "a list of: attention | feed-forward | embeddings"
    assert values["", "data.mix"] == "a mapping to: a number above 0 below 1"
    assert "recurrent" in values["", "model.kind"].split(" | ")


def test_settings_are_a_line_each_for_programs(call):
    result = call("models", "--keys")
    assert result.code == 0
    lines = result.out.splitlines()
    assert len(lines) == len([*keys()]) and {line.count("\t") for line in lines} == {3}
    (optimizer_line,) = (line for line in lines if line.startswith("training.optimizer="))
    assert optimizer_line.startswith("training.optimizer=adam\tadam | nadam | muon\t\tAdam; Adam with Nesterov")
