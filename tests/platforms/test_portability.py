"""No module depends on names that some systems lack: uses are guarded, and every module can be imported there."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import translucid
from tests.platforms.emulated import Windows
from tests.probes.forked import Forked

SOURCES = Path(translucid.__file__).parents[1]
GUARDED = {
    "bitext/documents/document.py": {"/proc/"},
    "bitext/reading.py": {"/proc"},  # in a comment
    "cli/main.py": {"/dev/"},  # in a message
    "distillation/report.py": {"os.getloadavg"},
    "ground/atomic.py": {"/dev/"},  # names of standard output, compared with what the user has given
    "ground/cache.py": {"os.getuid"},
    "cli/serve.py": {"signal.SIGHUP"},
    "jobs/processes.py": {"signal.pthread_sigmask", "signal.SIG_BLOCK", "signal.SIG_SETMASK"},
    "kernels/devices.py": {"/dev"},  # device files of GPUs, where there are any
    "kernels/machine.py": {
        "os.sched_getaffinity",
        "os.sysconf",
        "os.getpriority",
        "os.setpriority",
        "os.PRIO_PROCESS",
        "/proc/",
        "/sys/",
    },
    "serving/documents.py": {"os.getuid"},
    "serving/edge/connections.py": {"resource", "socket.TCP_USER_TIMEOUT"},
}
"""By file, names that Windows lacks and that the file uses only if they exist. Add only guarded uses."""


def missing_on_windows(text: str) -> set[str]:
    """Return the modules, names and paths in a source that Windows lacks."""
    modules = "|".join(Windows.missing_modules.split())
    uses = set(re.findall(rf"^\s*(?:import|from) ({modules})\b", text, flags=re.MULTILINE))
    for module, names in Windows.missing.items():
        uses |= set(re.findall(rf"\b{module}\.(?:{'|'.join(names.split())})\b", text))
        uses |= set(re.findall(rf"^\s*from {module} import .*", text, flags=re.MULTILINE))
    return uses | set(re.findall(r"(?<!\w)/(?:dev|proc|sys|tmp)\b/?", text))


def test_what_windows_lacks_is_used_behind_a_guard():
    by_file = {}
    for file in SOURCES.rglob("*.py"):
        if uses := missing_on_windows(file.read_text(encoding="utf-8")):
            by_file[file.relative_to(SOURCES).as_posix().removeprefix("translucid/")] = uses
    assert by_file == GUARDED


@pytest.mark.parametrize("line", ["import fcntl", "    from pwd import x", "os.fork()", "signal.SIGKILL", "'/dev/shm'"])
def test_a_use_would_be_seen(line):
    assert missing_on_windows(f"import os\n{line}\n")


def _import_anew():
    """Import all our modules on Windows, in a process that has imported those of others; print their names."""
    ours = ("bitext", "translucid")
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    with Windows():
        for name in ours:
            package = importlib.import_module(name)
            for module in pkgutil.walk_packages(package.__path__, f"{name}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
                    print(module.name)


def test_every_module_is_imported_without_what_windows_lacks():
    process = Forked(_import_anew)
    output, _ = process.communicate(600)
    assert process.returncode == 0, output[-3000:]
    assert len(output.splitlines()) > 400
