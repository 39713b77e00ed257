"""The entry point: runs the subcommand, and reports errors in one line and an exit code."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from rich.text import Text
from typer import Option
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from translucid import __version__
from translucid.cli.environment import apply_environment, check_environment
from translucid.cli.flags import flags_in_messages, with_flags, with_own_options
from translucid.cli.renamed import current_command, option_names, refused_option
from translucid.ground.console import Console, LogFormat
from translucid.ground.errors import UPGRADING, UserError, missing_package
from translucid.ground.interruption import Interrupted, raise_on_sigterm
from translucid.inspection.rendering.captions import captioned
from translucid.inspection.rendering.file_formats import PICTURES
from translucid.kernels.devices import configure_process, is_memory_full
from translucid.kernels.machine import limit_threads_to_quota, wait_asleep
from translucid.models.kinds import Extension, Task, extensions, installed_tasks, resolved, tasks

SEVERAL = ("FILES", "RULES", "KEY=VALUE", "SEEDS", "NAMES")
"""Options with these values take several of them: `--train a.tsv b.tsv` is `--train a.tsv --train b.tsv`."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""A full disk, a full quota, a read-only disk, somebody else's folder."""


class _Commands(TyperGroup):
    """All commands, with an exit code of SIGTERM that differs from that of Ctrl-C, which Typer always uses."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise typer.Exit(_interrupted(error)) from error


app = typer.Typer(
    cls=_Commands,
    name="translucid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=True,
    help="""Translation you can see through: train, run and look inside attention-based translators.

    `translucid demo` needs no input and takes two to five minutes.
    """,
    epilog="`translucid COMMAND --help` shows examples. `--debug` before the command shows tracebacks.",
)


def _version(requested: bool) -> None:
    if requested:
        print(f"translucid {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    debug: Annotated[bool, Option("--debug", help="Show tracebacks.")] = False,
    log_format: Annotated[
        LogFormat,
        Option(
            envvar="TRANSLUCID_LOG_FORMAT",
            help="Progress and messages on standard error: lines for people, JSON lines, or errors and warnings only.",
        ),
    ] = "text",
    code: Annotated[list[str] | None, Option("--code", metavar="FILE", help="Let a run execute this file.")] = None,
    version: Annotated[bool, Option("--version", help="Show the version.", callback=_version, is_eager=True)] = False,
) -> None:
    if code:
        from translucid.models.user_code import allow_code

        allow_code(*code)


PANELS = {
    "Start": ("demo", "learn"),
    "Train": ("train", "distill", "models", "tune"),
    "Translate": ("translate", "review"),
    "Evaluate": ("evaluate", "compare", "score"),
    "Inspect": ("look", "explain", "heads", "patch", "align", "draw"),
    "Serve and exchange": ("serve", "mcp", "import", "export"),
    "Data": ("data", "memory", "terms"),
}
"""The commands under the headings of `translucid --help`.

Each is the function of that name in the module of that name, or the group `app` of commands there; `import`, which
Python reserves, is `import_model`.
"""


def _flatten_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command without groups of options, which Typer does not know: each field is an option of its own.

    The command itself still gets its groups.
    """
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        if hasattr(hints[name], "_fields"):
            groups[name] = hints[name]
            parameters += _options_of(hints[name])
        else:
            # Keywords, as Typer passes them, need no order: required options may follow others.
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    context_name = next((name for name, hint in hints.items() if hint is typer.Context), "")
    if not context_name:
        parameters.append(Parameter("_context", Parameter.KEYWORD_ONLY, annotation=typer.Context))

    @wraps(command)
    def call(**values: Any) -> None:
        context = values[context_name] if context_name else values.pop("_context")
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in group._fields})
        with captioned(partial(_caption_of, values.get("runs", values.get("run")), context.obj)):
            command(**values)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {}  # else Typer would also read those of the command
    return call


def _caption_of(runs: Path | Sequence[Path] | None, arguments: Sequence[str] | None) -> str:
    """Return the runs with the version that trained each, and the command with these arguments.

    It names neither the folders of the machine nor its user.
    """
    from translucid.runs.run_folder import RunFolder

    origins = []
    for run in [runs] if isinstance(runs, Path) else runs or []:
        version = re.sub("^([0-9a-f]{10})[0-9a-f]+", r"\1", RunFolder(run).last_version() or "")
        origins.append(f"{run.name}, Translucid {version}" if version else run.name)
    words = [_without_folder(argument) for argument in arguments or [] if argument != "--overwrite"]
    command = shlex.join(["translucid", *words]).replace("'\"'\"'", r"'\''")  # as the page writes quotes
    return "\n".join([*filter(None, ["; ".join(origins)]), command])


def _without_folder(argument: str) -> str:
    """Return the name of a file, if its absolute path was given."""
    path = Path(argument)
    is_file = path.is_absolute() and (path.exists() or path.suffix.lower() in PICTURES)
    return path.name if is_file else argument


def _options_of(group: Any) -> Iterator[Parameter]:
    """Yield the options of a group, which `--help` shows in a panel of their own."""
    annotated: Any = Annotated  # type checkers accept no variables in its brackets
    for name, hint in get_type_hints(group, include_extras=True).items():
        value, option = get_args(hint)
        option = copy(option)  # groups may share it
        option.rich_help_panel = group.__doc__.rstrip(".")
        default = group._field_defaults.get(name, Parameter.empty)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotated[value, option])


def _register() -> None:
    registered: tuple[Task | Extension, ...] = (*tasks(), *extensions())
    for panel, names in PANELS.items():
        for name in names:
            attribute = "import_model" if name == "import" else name
            module = import_module(f"translucid.cli.{attribute}")
            command = getattr(module, "app", None) or getattr(module, attribute)
            for extension in registered:
                for path, (_, reference) in extension.commands.items():
                    if path.startswith(f"{name} "):
                        command.command(path.removeprefix(f"{name} "))(resolved(reference))
            _add(app, name, command, panel)
        for extension in registered:
            for name, (heading, reference) in extension.commands.items():
                if heading == panel:
                    _add(app, name, resolved(reference), panel)


def _add(commands: typer.Typer, name: str, command: Any, panel: str | None = None) -> None:
    """Add a command, a function or a group of commands, under a heading."""
    if isinstance(command, typer.Typer):
        for member in command.registered_commands:
            assert member.callback
            member.callback = _flatten_groups(member.callback)
        commands.add_typer(command, name=name, rich_help_panel=panel)
    else:
        commands.command(name, rich_help_panel=panel)(_flatten_groups(command))


def _with_installed(commands: TyperGroup, name: str) -> None:
    """Add a command of another package, if there is one of this name."""
    for extension in installed_tasks():
        if name in extension.commands:
            single = typer.Typer(rich_markup_mode="markdown")
            _add(single, name, resolved(extension.commands[name][1]))
            commands.add_command(get_command(single), name)


_register()


@cache  # building it takes a tenth of a second, and a program may call `run` often
def tree() -> TyperGroup:
    """Return the tree of all commands, ready to parse arguments."""
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    apply_environment(commands)
    return commands


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 2 the user's input is wrong, 1 our fault, 130 and 143 interrupted."""
    raise_on_sigterm()
    wait_asleep()
    limit_threads_to_quota()
    configure_process()
    _hold_closed_streams()
    _write_utf8()
    code = _flush_output(run(list(sys.argv[1:] if arguments is None else arguments)))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Threads of gloo may still hold tensors, and would abort the interpreter at exit.
        if sys.stderr:
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _flush_output(code: int) -> int:
    """Flush standard output, and return the exit code of a command that has ended with `code`.

    What can't be written is dropped: Python would try again at exit, print a second error, and exit with 120.
    """
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if code == 0 and not isinstance(error, BrokenPipeError):
            return _refused(f"standard output: can't be written ({error.strerror}). Make room, or write elsewhere.")
    return code


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _hold_closed_streams() -> None:
    """Open standard input, output and error as the null device if they are closed.

    Otherwise the next file that is opened would get their number, and messages would be written into it. `sys.stdin`
    and so on stay None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _write_utf8() -> None:
    """Write UTF-8 to files and pipes; the default of Windows is a code page that lacks most languages."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")


def _parsing_problem(error: TyperException) -> str:
    """Return what is wrong with a command line that can't be parsed."""
    if forms := refused_option(error):
        former, current = forms
        return f"The option {former} is now {current}. {UPGRADING}"
    command = getattr(getattr(error, "ctx", None), "command_path", "translucid")
    return f"{error.format_message()} See {command} --help."


@flags_in_messages()
def run(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    options, texts = _split_arguments(arguments)
    options, requested_format = without_log_format(options)
    # Errors of the parser, which refuses an unknown format, are written in the format, too.
    log_format = requested_format or os.environ.get("TRANSLUCID_LOG_FORMAT")
    Console.log_format = log_format if log_format in get_args(LogFormat) else "text"  # type: ignore[assignment]
    # Typer accepts options of all commands only before the command.
    debug = "--debug" in options
    arguments = ["--debug"] if debug else []
    if requested_format is not None:
        arguments.append(f"--log-format={requested_format}")
    for option in options:
        if option != "--debug":
            arguments.append(option)
    arguments += texts
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed", fix="Send it to a file, or to /dev/null.")
        commands = tree()
        command = next((option for option in options if not option.startswith("-")), "")
        if command and command not in commands.commands:
            _with_installed(commands, command)
        if current := current_command(options, commands):
            raise UserError(f"the command is now {current}", fix=UPGRADING)
        expanded = several(arguments, commands)
        if not {"--help", "--version"}.intersection(options):
            check_environment(commands, called_command(options, commands), os.environ)
        result = commands(expanded, prog_name="translucid", standalone_mode=False, obj=arguments)
        # Not being standalone, Typer returns the exit code of `typer.Exit`.
        return result if isinstance(result, int) else 0
    except UserError as error:
        if debug:
            raise
        own = option_names(called_command(options, tree()))
        return _refused(with_own_options(with_flags(str(error)), own))
    except TyperException as error:
        if not error.format_message():  # a group without a command, whose help is printed already
            return 2
        return _refused(_parsing_problem(error))
    except (KeyboardInterrupt, typer.Abort) as error:
        return _interrupted(error)
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        _drop_output()
        return 0
    except Exception as error:
        if interruption := _cause(error, KeyboardInterrupt):
            return _interrupted(interruption)
        if debug:
            raise
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            command = next((option for option in options if not option.startswith("-")), "")
            return _refused(str(missing_package(f"translucid {command}", "PyTorch", "train")))
        # PyTorch and the system have errors of their own for what the user can change.
        if is_memory_full(error):
            return _refused("the memory of the GPU is full. Try --device cpu, or a lower --beam where there is one.")
        if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):  # from `tempfile`
            return _refused("no temporary folder can be written to. Set TMPDIR to one that can.")
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return _refused(f"{error}. Make room, or write elsewhere.")
        problem = f"{type(error).__name__}: {error}".split("\n")[0]
        if os.environ.get("TRANSLUCID_CODE"):
            from translucid.models.user_code import place_in_user_code

            if location := place_in_user_code(error):
                return _refused(f"{location}{problem}. --debug shows the traceback.")
        _say("internal error", f"{problem}. Please report it, with what --debug says.")
        return 1


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Return the cause of an error; libraries raise their own when Ctrl-C interrupts their import."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, kind):
        cause = cause.__cause__
    return cause


def _interrupted(error: BaseException) -> int:
    Console(stderr=True).print("interrupted")
    return error.exit_code if isinstance(error, Interrupted) else 130


def _refused(message: str) -> int:
    _say("error", message)
    return 2


def _say(kind: str, message: str) -> None:
    Console(stderr=True).print(Text.assemble((f"{kind}:", "red"), f" {message}"), soft_wrap=True)


def _split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments at `--`, after which there are no options."""
    separator = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:separator]), list(arguments[separator:])


def without_log_format(options: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the options without `--log-format`, which may stand anywhere, and its value; `serve` has its own."""
    remaining: list[str] = []
    log_format = None
    arguments = iter(options)
    for option in arguments:
        # The value may follow an equals sign or be the next argument.
        name, _, value = option.partition("=")
        command = next((earlier for earlier in remaining if not earlier.startswith("-")), "")
        if name == "--log-format" and command != "serve":
            log_format = value or next(arguments, "")
        else:
            remaining.append(option)
    return remaining, log_format


def several(arguments: Sequence[str], commands: TyperGroup) -> list[str]:
    """Repeat the name of an option before each of its values, if the command takes several."""
    options, texts = _split_arguments(arguments)
    names = _repeatable_options(options, commands)
    expanded: list[str] = []
    option, values = "", 0
    for argument in options:
        if argument.startswith("-"):
            option, equals, _ = argument.partition("=")
            values = 1 if equals else 0
        elif option in names:
            # The parser itself takes the first value.
            if values:
                expanded.append(option)
            values += 1
        expanded.append(argument)
    return expanded + texts


def _repeatable_options(options: Sequence[str], commands: TyperGroup) -> set[str]:
    """Return the options of the called command that take several values; those of other commands may differ."""
    names: set[str] = set()
    for option in called_command(options, commands).params:
        if option.multiple and option.metavar in SEVERAL:
            names.update(option.opts)
    return names


def called_command(options: Sequence[str], commands: TyperGroup) -> Any:
    """Return the command that the arguments call, or the last group that they name."""
    command: Any = commands
    for argument in options:
        if isinstance(command, TyperGroup) and argument in command.commands:
            command = command.commands[argument]
    return command
