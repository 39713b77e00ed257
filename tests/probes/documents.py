"""Random documents: generators for the XML formats and for string files of programs."""

from tests.probes.packed import docx, epub, ods, odt, pptx, xlsx
from tests.probes.strings import fluent, qt, resx, xcstrings
from tests.probes.units import android, tmx, xliff_1, xliff_2

XML_MAKERS = {
    "a.xlf": xliff_1,
    "b.xliff": xliff_2,
    "c.tmx": tmx,
    "app.ts": qt,
    "strings.xml": android,
    "d.docx": docx,
    "e.pptx": pptx,
    "f.odt": odt,
    "g.epub": epub,
    "h.resx": resx,
    "i.xlsx": xlsx,
    "l.ods": ods,
}
"""Generators of XML documents, by an example of a file name."""
MAKERS = {**XML_MAKERS, "j.xcstrings": xcstrings, "k.ftl": fluent}
