"""sacreBLEU's test sets as corpora, such as `sacrebleu:wmt14/en-de`.

sacreBLEU (Post 2018, arXiv 1804.08771) downloads a set into its cache, `$SACREBLEU` or `~/.sacrebleu`, and stores each
field of a language pair as a file with a line per sentence: `wmt14/wmt14.en-de.src`, `.ref` or `.ref-0`, `.docid`.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from sacrebleu.dataset.base import Dataset

PREFIX = "sacrebleu:"
"""The beginning of the name of a corpus that is a test set of sacreBLEU."""


class CachedSet(NamedTuple):
    """The files of a test set, with a line per sentence."""

    source: Path
    references: list[Path]
    """At least one, in sacreBLEU's order."""
    documents: Path | None
    """The document of each sentence, if the set has documents."""


def is_test_set(name: str) -> bool:
    """Whether the name of a corpus is that of a test set of sacreBLEU."""
    return name.startswith(PREFIX)


def problem_of_test_set(name: str) -> tuple[str, str] | None:
    """Return what is wrong with the name of a test set, and how to write it; None if sacreBLEU has the set."""
    from sacrebleu.dataset import DATASETS

    set_name, language_pair = _parts(name)
    if set_name in DATASETS:
        known = DATASETS[set_name].langpairs
        if language_pair in known:
            return None
        what = f"sacreBLEU's {set_name} has no language pair {language_pair!r}"
        return what, f"It has {', '.join(sorted(known))}."
    whole = f"{set_name}/{language_pair}".strip("/")
    if whole in DATASETS:
        known = DATASETS[whole].langpairs
        return "names no language pair", f"Write {PREFIX}{whole}/{min(known)}; it has {', '.join(sorted(known))}."
    unknown = set_name or language_pair
    similar = [known for known in DATASETS if unknown and known.startswith(unknown)]
    fix = f"Known: {', '.join(sorted(similar))}." if similar else nearest(unknown, DATASETS)
    return f"sacreBLEU has no test set {unknown!r}", fix


@lru_cache(maxsize=64)
def _refuse_unknown(name: str) -> None:
    if problem := problem_of_test_set(name):
        what, fix = problem
        raise UserError(what, file=name, fix=fix)


def cached_set(name: str) -> CachedSet:
    """Return the files of a test set, which sacreBLEU downloads if its cache does not have them.

    Raises:
        UserError: there is no such set, or it is not in the cache and can't be downloaded.
    """
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR

    _refuse_unknown(name)
    set_name, language_pair = _parts(name)
    dataset = DATASETS[set_name]
    # sacreBLEU reads the variable only when it is imported.
    folder = Path(os.environ.get("SACREBLEU") or SACREBLEU_DIR, set_name)
    stem = f"{set_name.replace('/', '_')}.{language_pair}"
    source, documents = folder / f"{stem}.src", folder / f"{stem}.docid"
    references = []
    for field in _reference_fields(dataset, language_pair):
        references.append(folder / f"{stem}.{field.replace(':', '-')}")
    missing = [file for file in (source, *references) if not file.is_file()]
    if missing:
        _download(name, dataset, missing[0])
    return CachedSet(source, references, documents if documents.is_file() else None)


def _parts(name: str) -> tuple[str, str]:
    """Return the name of the set and the language pair; names of sets have slashes, too."""
    set_name, _, language_pair = name.removeprefix(PREFIX).rpartition("/")
    return set_name, language_pair


def _reference_fields(dataset: Dataset, language_pair: str) -> list[str]:
    """Return the fields of the references that sacreBLEU scores with."""
    from sacrebleu.dataset.wmt_xml import WMTXMLDataset

    if not isinstance(dataset, WMTXMLDataset):
        return [field for field in dataset.fieldnames(language_pair) if field.startswith("ref")]
    # Its `fieldnames` would download the set.
    described, translators = dataset.langpairs[language_pair], dataset.kwargs.get("refs", [])
    if isinstance(described, dict):
        translators = described.get("refs", translators)
    return [f"ref:{translator}" if translator else "ref" for translator in translators]


def _download(name: str, dataset: Dataset, missing: Path) -> None:
    """Let sacreBLEU download and convert a set.

    Raises:
        UserError: it can't.
    """
    set_name, language_pair = _parts(name)
    logger = logging.getLogger("sacrebleu")  # its errors are part of ours
    was_disabled, logger.disabled = logger.disabled, True
    try:
        dataset.process_to_text(language_pair)
        reason = "" if missing.is_file() else "sacreBLEU has not made the file"
    except SystemExit:  # sacreBLEU exits the process if the checksum is wrong
        reason = f"the download is damaged: delete {missing.parent / 'raw'}"
    except Exception as error:
        reason = str(getattr(error, "reason", error)).partition("\n")[0] or type(error).__name__
    finally:
        logger.disabled = was_disabled
    if reason:
        what = f"{missing.name} is not in sacreBLEU's cache, {missing.parent}, and can't be downloaded ({reason})"
        command = f"sacrebleu --download {set_name} --language-pair {language_pair}"
        fix = f"Run `{command}` on a machine with a network, and copy the folder ~/.sacrebleu/{set_name} from there."
        raise UserError(what, file=name, fix=fix)
