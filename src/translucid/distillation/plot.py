"""The plot of a report: quality over the time for one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from translucid.distillation.measuring import Measured, Measurements
from translucid.inspection.plots.saving import new_figure

_MARKERS = {1: "v", 5: "o"}
"""The marker of each beam."""


def draw_report(measurements: Measurements, front: Sequence[Measured]) -> Figure:
    """Draw a point for each system: its score, and the time for one sentence on a logarithmic axis.

    Names are in a legend beside the plot, where they can't overlap. A line joins the systems of the Pareto front.
    """
    figure = new_figure(9, 4.8)
    axes = figure.subplots()
    # Between two systems of the front, the faster one is the best within the time.
    times = [system.milliseconds for system in front]
    scores = list(map(measurements.score, front))
    axes.step(times, scores, where="post", color="gray", linewidth=1, zorder=1)
    colors: dict[str, str] = {}
    for system in measurements.systems:
        color = colors.setdefault(system.name, f"C{len(colors)}")
        face = color if system in front else "none"
        axes.plot(
            system.milliseconds,
            measurements.score(system),
            marker=_MARKERS.get(system.beam, "s"),
            markersize=8,
            color=color,
            markerfacecolor=face,
            linestyle="none",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="ms for one sentence", ylabel=measurements.metric)
    axes.set_title("quality and speed; filled: on the Pareto front", fontsize=10)
    axes.grid(alpha=0.3)
    axes.margins(0.08)
    figure.legend(handles=_handles(measurements, colors), loc="outside right upper", fontsize=8)
    return figure


def _handles(measurements: Measurements, colors: dict[str, str]) -> list[Line2D]:
    """Return the entries of the legend: a line for each name, a marker for each beam, and the front."""
    handles = [Line2D([], [], color=color, linewidth=4, label=name) for name, color in colors.items()]
    beams = {system.beam for system in measurements.systems}
    for beam in sorted(beams, reverse=True):
        label = "greedy" if beam == 1 else f"beam {beam}"
        marker = _MARKERS.get(beam, "s")
        handles.append(Line2D([], [], marker=marker, color="black", linestyle="none", label=label))
    return [*handles, Line2D([], [], color="gray", linewidth=1, label="Pareto front")]
