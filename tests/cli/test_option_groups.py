"""Options are declared once, and commands take them in groups."""

from typer.core import TyperOption

from translucid.cli import evaluate, explain, option, translate
from translucid.cli.main import tree
from translucid.cli.printing import evenly_spread, with_examples

SHARED = (
    "--device",
    "--engine",
    "--overwrite",
    "--json",
    "--beam",
    "--skip-bad",
    "--ensemble",
    "--terms-mode",
    "--domain",
)


def leaves(group):
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from leaves(command)
        else:
            yield command


def options_of(name):
    command = tree().commands[name]
    return {
        max(parameter.opts, key=len): parameter for parameter in command.params if isinstance(parameter, TyperOption)
    }


def test_each_field_of_a_group_is_an_option_in_a_panel_with_the_title_of_the_group():
    options = options_of("translate")
    assert options["--rerank-with"].rich_help_panel == "Ranking"
    assert options["--device"].rich_help_panel == "Execution"
    assert options["--source-language"].rich_help_panel == "Languages of a multilingual model"
    assert options_of("classify")["--device"].rich_help_panel is None  # the declaration itself has none


def test_an_option_has_the_same_description_in_all_commands():
    descriptions = {name: set() for name in SHARED}
    for command in leaves(tree()):
        for parameter in command.params:
            for name in descriptions.keys() & {*parameter.opts}:
                descriptions[name].add(parameter.help)
    assert all(len(texts) == 1 for texts in descriptions.values()), descriptions


def test_a_required_option_of_a_group_is_required(call):
    result = call("data", "clean", "pairs.tsv")
    assert result.code == 2 and "Missing option '--out'" in result.err


def test_given_are_options_that_differ_from_their_defaults():
    assert option.changed_flags(option.Languages(), option.Terms(), option.Sampling()) == {}
    changed = option.changed_flags(
        option.Search(length_penalty=0.0), option.Terms(terms_mode=[option.TermTreatment.CONSTRAIN])
    )
    assert changed == {"--length-penalty": True, "--terms-mode": True}


def test_given_options_are_named_by_the_flags_of_the_command():
    output = translate.Output(output_format="jsonl")
    assert option.changed_flags(evaluate.Scoring(perplexity=False), output) == {
        "--no-perplexity": True,
        "--format": True,
    }
    assert option.changed_flags(explain.Output(as_json=True)) == {"--json": True}


def test_sampling_leaves_to_the_run_what_is_not_given():
    assert option.Sampling(top_k=3).settings() == {
        "sample": True,
        "temperature": None,
        "top_k": 3,
        "top_p": None,
        "seed": None,
    }
    assert option.Sampling(seed=3).settings()["sample"] is None


def test_help_ends_with_the_examples_of_the_module():
    def command():
        """Do it.

        At once.
        """

    with_examples("A module.\n\n**Examples**\n\n    translucid do it\n")(command)
    assert command.__doc__ == "Do it.\n\nAt once.\n\n**Examples**\n\n    translucid do it"


def test_samples_are_spread_evenly():
    assert evenly_spread(3, 9) == [0, 3, 6]
    assert evenly_spread(5, 2) == [0, 1]
    assert evenly_spread(2, 0) == []
