"""The HTML of attention masks in notebooks."""

import pytest
import torch

from translucid.attention.masks import padding_mask, target_mask
from translucid.inspection.rendering.html import ShownMask


def test_a_mask_has_a_sign_for_each_pair_of_positions():
    mask = target_mask(torch.tensor([[2, 7, 0]]), 0)
    html = ShownMask(mask, ["<s>", "Me", "<pad>"], ["<s>", "Me", "<pad>"])._repr_html_()
    assert html.count("✓") == 1 + 2 + 2 and html.count("·") == 4
    assert "Me may not look at &lt;pad&gt;" in html
    assert "<pad>" not in html


def test_one_row_counts_for_all():
    html = ShownMask(padding_mask(torch.tensor([[7, 0]]), 0), ["a", "b", "c"], ["x", "y"])._repr_html_()
    assert html.count("✓") == html.count("·") == 3


def test_the_number_of_names_must_fit_the_mask():
    with pytest.raises(ValueError, match="for 1 rows"):
        ShownMask(target_mask(torch.tensor([[2, 7, 0]]), 0), ["a"], ["x", "y", "z"])
