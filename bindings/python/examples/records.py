"""Plots a record of races: `python bindings/python/examples/records.py RECORD OUT.svg`.

Each bar is a variant's median as a multiple of its baseline's, with the interval; 1 is as fast.
"""

import json
import sys
from pathlib import Path


def read(path):
    """The races of a record, from the fastest variant of each subject to the slowest."""
    record = json.loads(Path(path).read_text())
    races = [race for race in record["results"] if race["ratio"] > 0]
    return record, sorted(races, key=lambda race: (race["subject"], -race["ratio"]))


def plot(path):
    """A figure with a panel for each subject of the record."""
    import matplotlib.pyplot as plt

    record, races = read(path)
    subjects = sorted({race["subject"] for race in races})
    heights = [sum(race["subject"] == subject for race in races) for subject in subjects]
    figure, panels = plt.subplots(
        len(subjects), 1, figsize=(7, 1.2 + 0.45 * sum(heights)), squeeze=False, layout="constrained", height_ratios=heights
    )
    for panel, subject in zip(panels[:, 0], subjects):
        mine = [race for race in races if race["subject"] == subject]
        times = [1 / race["ratio"] for race in mine]
        low = [time - 1 / race["high"] for time, race in zip(times, mine)]
        high = [1 / race["low"] - time for time, race in zip(times, mine)]
        bars = panel.barh([race["variant"] for race in mine], times, xerr=[low, high], color="#4878a8", height=0.6)
        panel.bar_label(bars, labels=[f"×{time:.3g}" for time in times], padding=4)
        panel.set_xlim(0, 1.15 * max(times + [1]))
        panel.axvline(1, color="#888888", linewidth=1)
        panel.set_title(f"{subject}: time as a multiple of {mine[0]['baseline']}'s", fontsize=10, loc="left")
        panel.invert_yaxis()
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{record['date'][:10]}: {record['command'].split(' --')[0]}", fontsize=10)
    return figure


def main():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "lanework"
    source, target = sys.argv[1:]
    plot(source).savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
