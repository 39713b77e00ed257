"""The colors of the pages have sufficient contrast, as WCAG 2.2 defines it, in every color scheme."""

import re
from importlib.resources import files

import pytest

BACKGROUNDS = ("background", "field", "subtle")
COLORS = ("text", "muted", "accent", "success", "warning", "error")
TEXT = [(color, background) for color in COLORS for background in BACKGROUNDS]
TEXT += [("text", "tint"), ("on-accent", "accent")]
SIGNS = [("control-border", "background"), ("control-border", "field"), *((f"c{i}", "background") for i in range(1, 7))]


def schemes():
    """Return the colors of each scheme: those of the first block, updated by the blocks of media queries."""
    style = (files("translucid.inspection") / "web" / "tokens.css").read_text(encoding="utf-8")
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.S)
    blocks = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media")]
    light, dark, strong, strong_dark = blocks
    return {
        "light": light,
        "dark": light | dark,
        "strong": light | strong,
        "strong dark": light | dark | strong | strong_dark,
    }


def contrast(first, second):
    """Return the contrast ratio of two colors."""

    def linear(value):
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    def light(color):
        channels = [linear(int(color[i : i + 2], 16) / 255) for i in (1, 3, 5)]
        return sum(c * w for c, w in zip(channels, (0.2126, 0.7152, 0.0722), strict=True))

    dark, bright = sorted((light(first), light(second)))
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("name", ["light", "dark", "strong", "strong dark"])
def test_text_can_be_read_and_controls_seen(name):
    colors, strong = schemes()[name], name.startswith("strong")
    contrasts = {pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in TEXT}
    assert min(contrasts.values()) >= (7 if strong else 4.5), sorted(contrasts.items(), key=lambda item: item[1])[:3]
    contrasts = {pair: contrast(colors[pair[0]], colors[pair[1]]) for pair in SIGNS}
    assert min(contrasts.values()) >= 3, sorted(contrasts.items(), key=lambda item: item[1])[:3]
