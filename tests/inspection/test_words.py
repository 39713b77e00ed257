"""Word maps from pieces, alignments from word maps, and their display in a terminal."""

import io

import pytest
import torch
from rich.console import Console

from translucid.evaluation.alignment_error import to_pharaoh
from translucid.inspection.rendering.terminal import attention_table, heatmap
from translucid.inspection.word_weights import joined_links, link, source_shares
from translucid.inspection.words import WordMap, word_map, word_spans

SOURCE = ["▁I", "▁drink", "▁wa", "ter", "</s>"]
TARGET = ["▁beb", "o", "▁agua", "</s>"]
WEIGHTS = torch.tensor(
    [
        [0.5, 0.3, 0.1, 0.0, 0.1],
        [0.1, 0.7, 0.1, 0.1, 0.0],
        [0.0, 0.1, 0.3, 0.4, 0.2],
        [0.0, 0.0, 0.0, 0.1, 0.9],
    ]
)


def test_pieces_become_words():
    assert word_spans(SOURCE) == [("I", 0, 1), ("drink", 1, 2), ("water", 2, 4), ("</s>", 4, 5)]
    assert word_spans(["▁", "¿", "Qué", "▁tal", "?"]) == [("¿Qué", 0, 3), ("tal?", 3, 5)]
    assert word_spans(["▁", "▁a"]) == [("a", 0, 2)]
    assert word_spans([]) == []


def test_source_pieces_are_summed_and_target_pieces_averaged():
    words = word_map(SOURCE, TARGET, WEIGHTS)
    assert words.source == ["I", "drink", "water", "</s>"]
    assert words.target == ["bebo", "agua", "</s>"]
    expected = torch.tensor([[0.3, 0.5, 0.15, 0.05], [0.0, 0.1, 0.7, 0.2], [0.0, 0.0, 0.1, 0.9]])
    torch.testing.assert_close(words.weights, expected)
    torch.testing.assert_close(words.weights.sum(1), torch.ones(3))


def test_sides_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="4 target and 4 source"):
        word_map(SOURCE[:-1], TARGET, WEIGHTS)
    with pytest.raises(ValueError, match="weights"):
        WordMap(["a"], ["b"], torch.zeros(2, 1))


def test_each_target_word_is_linked_to_the_source_word_with_most_attention():
    words = word_map(SOURCE, TARGET, WEIGHTS)
    links = link(words.weights[:-1, :-1].numpy(), both=False)
    assert links == [(1, 0), (2, 1)]
    assert to_pharaoh(links) == "1-0 2-1"
    end_words = WordMap(["a", "b", "</s>"], ["x", "</s>"], torch.tensor([[0.1, 0.2, 0.7], [0, 0, 1.0]]))
    assert link(end_words.weights[:-1, :-1].numpy(), both=False) == [(1, 0)]
    shares = source_shares(WordMap(["</s>"], ["</s>"], torch.ones(1, 1)).between_words.numpy())
    assert link(shares, both=True) == link(shares, both=False) == []


@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("render", [lambda words, width: attention_table(words), heatmap])
def test_the_terminal_shows_all_words_within_its_width(width, render):
    words = word_map(SOURCE, TARGET, WEIGHTS)
    console = Console(file=io.StringIO(), width=width)
    console.print(render(words, width))
    text = console.file.getvalue()
    assert all(word in text for word in ("drink", "water", "bebo", "agua"))
    assert all(len(line) <= width for line in text.splitlines())


def test_words_are_text_not_markup():
    words = WordMap(["[bold]", "</s>"], ["[/red]", "</s>"], torch.eye(2))
    console = Console(file=io.StringIO(), width=80)
    console.print(attention_table(words))
    console.print(heatmap(words, 80))
    assert console.file.getvalue().count("[/red]") == 2
    assert console.file.getvalue().count("[bold]") == 2


def test_links_of_words_that_the_tokenizer_cuts():
    links = [(0, 0, 1.0), (1, 1, 0.5), (2, 2, 1.0), (3, 2, 0.25), (9, 0, 1.0)]
    # The second source word is two words of the tokenizer, the third none, and the second target word is two.
    assert joined_links(links, [1, 2, 0, 1], [1, 2]) == [(0, 0, 1.0), (1, 1, 0.75), (3, 1, 0.125)]
    assert joined_links(links, [1] * 4, [1] * 3) == links
