"""Weblate's own classes for DeepL and LibreTranslate, unchanged, with a running server.

    python -m venv weblate-env && weblate-env/bin/pip install weblate
    translucid serve runs/eng-spa &
    weblate-env/bin/python benchmarks/weblate_clients.py [--address http://127.0.0.1:5000]

Weblate is not one of our dependencies. It runs in a separate environment, with an SQLite database in memory. Packages
that it needs only for fonts and pictures (gi, cairo, tesserocr) may be missing.
"""

import argparse
import os
import sys
import tempfile
import types
from pathlib import Path
from unittest import mock

TEXTS = (
    ("Open the door", ""),
    ("Hello %s, how are you?", "python-format"),
    ("%(count)d files were deleted & moved.", "python-format"),
    ('Click <a href="%(url)s">here</a> to continue', "python-format"),
)
_SETTINGS = """
from weblate.settings_example import *
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SECRET_KEY = "of a trial"
"""


class _Missing(types.ModuleType):
    def __getattr__(self, name: str) -> mock.MagicMock:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", default="http://127.0.0.1:5000")
    address = parser.parse_args().address
    try:
        import django
    except ImportError:
        sys.exit("WEBLATE IS NOT TRIED: it is not installed here (see the first lines of this file)")
    for name in ("gi", "gi.repository", "cairo", "tesserocr"):
        sys.modules.setdefault(name, _Missing(name))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trial_settings.py").write_text(_SETTINGS)
        sys.path.insert(0, folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "trial_settings"
        django.setup()
        _try(address)


def _try(address: str) -> None:
    from weblate.checks.flags import Flags
    from weblate.glossary import models
    from weblate.lang.models import Language
    from weblate.machinery import base
    from weblate.machinery.deepl import DeepLTranslation
    from weblate.machinery.libretranslate import LibreTranslateTranslation

    def unit(flags: str) -> mock.MagicMock:
        mock_unit = mock.MagicMock(all_flags=Flags(flags), glossary_terms=[])
        mock_unit.translation.component.file_format_flags = ""
        return mock_unit

    models.get_glossary_tsv = lambda translation: ""  # of Weblate's own database, which is empty
    units = [(text, unit(flags)) for text, flags in TEXTS]
    english, spanish = Language(code="en", name="English"), Language(code="es", name="Spanish")
    for kind, settings in (
        (DeepLTranslation, {"key": "any", "url": f"{address}/v2/"}),
        (LibreTranslateTranslation, {"key": "", "url": f"{address}/"}),
    ):
        machine = kind(settings)
        with mock.patch.object(kind, "get_glossary_id", return_value=None, create=True):
            translations = machine._translate(*machine.get_languages(english, spanish), units)
        print(kind.name)
        for text, placeholders_of_unit in units:
            _, placeholders = machine.cleanup_text(text, placeholders_of_unit)
            translation = translations[text][0]["text"]
            lost = [
                placeholder
                for placeholder in placeholders.values()
                if translation.count(base.unescape(placeholder)) != 1
            ]
            print(f"  {text} -> {translation}" + f" (not once: {lost})" * bool(lost))
    machine = DeepLTranslation({"key": "any", "url": f"{address}/v2/"})
    assert machine.is_glossary_supported("EN", "ES")
    machine.create_glossary("EN", "ES", "trial", "door\tpuerta")
    glossaries = machine.list_glossaries()["trial"]
    machine.delete_glossary(glossaries)
    assert "trial" not in machine.list_glossaries()
    print("glossaries: created, listed, deleted")


if __name__ == "__main__":
    main()
