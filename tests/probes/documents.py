"""Documents of the XML formats, drawn by chance: texts with tags in them, in files as programs write them."""

from tests.probes.packed import docx, epub, odt, pptx
from tests.probes.units import android, tmx, xliff_1, xliff_2

MAKERS = {
    "a.xlf": xliff_1,
    "b.xliff": xliff_2,
    "c.tmx": tmx,
    "strings.xml": android,
    "d.docx": docx,
    "e.pptx": pptx,
    "f.odt": odt,
    "g.epub": epub,
}
"""By the name that a file of each kind could have."""
