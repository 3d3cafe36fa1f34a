"""Tables for the terminal: labels saved first, 80 columns, the probe by name."""

import io
from dataclasses import replace

from rich.console import Console

from manicap.report.tables import state_table
from tests.report.hand_made import ENCODER_CURVES, other_evaluation, reading, result, ridge_evaluation

COLUMNS = 80


def lines_of(results):
    console = Console(width=COLUMNS, record=True, file=io.StringIO())
    console.print(state_table(results))
    return [line.strip() for line in console.export_text().splitlines()]


def row_of(lines, name):
    (row,) = [line for line in lines if line.startswith(name)]
    return row.removeprefix(name).split()


def test_labels_saved_come_first():
    lines = lines_of([result(ridge_evaluation())])
    title = " ".join(lines)
    assert lines[0].startswith("Labels saved: 2 x. 200 labelled frames do what 400 do on the untrained")
    assert "Pong, st-dim: protocol fixed, annotations corrected, ridge probe on 256 features (output), seeds 0" in title
    assert row_of(lines, "small object localization") == ["0.800", "0.600", "0.700", "0.720"]
    assert row_of(lines, "misc keys") == ["-", "-", "0.900", "0.900"]  # names have no R2
    assert row_of(lines, "mean over categories") == ["0.600", "0.450", "0.700", "0.720"]


def test_several_seeds_have_the_geometric_mean_of_labels_saved():
    # The second seed needs as many labels on both: 1 x. The geometric mean of 2 and 1 is 1.41.
    same = reading(ENCODER_CURVES)
    second = ridge_evaluation(readings={"encoder": same, "untrained": same})
    lines = lines_of([result(ridge_evaluation()), result(second, seed=1)])
    title = " ".join(lines)
    assert (
        "Labels saved against the untrained network at 200 labels: 1.4 x, geometric mean over 2 seeds (1 to 2)."
        in title
    )
    assert "seeds 0, 1" in title
    assert row_of(lines, "mean over categories") == ["0.600±0.000", "0.450±0.000", "0.700±0.000", "0.720±0.000"]


def test_published_numbers_say_that_their_probe_is_another():
    said = "Published numbers were measured with the 2019 code's linear probe, not with"
    assert f"{said} ridge." in " ".join(lines_of([result(ridge_evaluation())]))
    assert f"{said} knn." in " ".join(lines_of([result(other_evaluation("knn"))]))
    assert said not in " ".join(lines_of([result(other_evaluation("linear"))]))
    # As printed in arXiv 1906.08226, Table 2: ST-DIM on Pong.
    assert row_of(lines_of([result(ridge_evaluation())]), "published: st-dim") == ["0.810"]


def test_other_probes_keep_f1_and_accuracy():
    lines = lines_of([result(other_evaluation("knn"))])
    assert lines[0].startswith("Pong, st-dim: protocol fixed, annotations corrected, knn probe")
    assert row_of(lines, "mean over categories") == ["0.700", "0.720", "0.050", "0.700", "0.720"]


def test_printed_evaluation_starts_with_labels_saved_and_fits_a_terminal():
    lines = str(ridge_evaluation()).splitlines()
    assert lines[0].startswith("Labels saved: 2 x. 200 labelled frames do what 400")
    assert max(map(len, lines)) <= COLUMNS
    text = " ".join(" ".join(lines).split())
    assert "pong: protocol fixed, annotations corrected, ridge probe on 256 features, seed 0" in text
    assert "800 training, 100 validation and 200 test frames of a 1,200-step store" in text
    assert [line.split() for line in lines if line.startswith("  ball_x")] == [
        ["ball_x", "0.800", "0.600", "0.700", "0.720"]
    ]
    assert [line.split()[1:] for line in lines if line.startswith(("untrained", "majority", "pixels"))] == [
        ["2", "x", "2", "to", "2", "0.450", "0.720"],
        ["-", "-", "-", "0.050"],
        ["random", "2", "x", "2", "to", "2", "0.525", "0.710"],
    ]


def test_printed_evaluation_without_an_untrained_network_compares_with_another_floor():
    found = ridge_evaluation()
    floors = {name: scores for name, scores in found.floors.items() if name != "untrained"}
    readings = {name: each for name, each in found.readings.items() if name != "untrained"}
    text = " ".join(str(replace(found, floors=floors, readings=readings)).split())
    assert text.startswith("Labels saved: 2 x. 200 labelled frames do what 400 do on random projections of the pixels")
    assert "untrained" not in text


def test_printed_evaluation_of_another_probe_has_a_column_for_each_floor():
    lines = str(other_evaluation("knn")).splitlines()
    assert lines[0] == "pong: protocol fixed, annotations corrected, knn probe on 256 features, seed 0"
    assert lines[3].split() == ["F1", "accuracy"]
    assert lines[4].split() == ["encoder", "majority", "untrained"] * 2
    assert lines[-1].split()[3:] == ["0.700", "0.050", "0.720"] * 2
