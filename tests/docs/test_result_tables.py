"""Tables of results are made from the files, and from nothing else."""

from __future__ import annotations

import json

from docs.builders import tables


def test_table_of_results_has_the_last_figure_of_each_recipe(tmp_path):
    figure = {
        "dataset": "digits",
        "epsilon": 1.99941,
        "delta": 1e-5,
        "mean": 0.5,
        "sd": None,
        "draws": 1,
        "published": None,
        "recipe": "examples/direct.toml",
    }
    later = {**figure, "mean": 0.93456, "sd": 0.0123, "draws": 3, "published": "a paper 0.9"}
    page = "a\n<!-- results: made-up -->\nold\n<!-- end of results -->\nb\n"
    nothing = tables.filled(page, tmp_path)
    assert "Nothing was measured yet.\n" in nothing
    (tmp_path / "made-up.jsonl").write_text(f"{json.dumps(figure)}\n{json.dumps(later)}\n")
    filled = tables.filled(page, tmp_path)
    *_, row, _, _ = filled.splitlines()
    assert row == (
        "| digits | 2.000 | 1e-05 | 93.46%, sd 1.23% | 3 | a paper 0.9 "
        "| [direct](../examples/direct.toml) |"
    )
    assert "old" not in filled
    assert "50.00%" not in filled
    assert tables.filled(filled, tmp_path) == filled


RONA = {
    "dataset": "mnist",
    "epsilon": 1.9991,
    "metric": "accuracy on the official test part",
    "mean": 0.9871,
    "sd": 0.0004,
    "published": 0.9864,
    "recipe": "examples/rona.toml",
    "setting": "40 % public",
    "student": "mobile-10k",
    "controls": {
        "Base": {"mean": 0.98, "sd": None},
        "teacher on public data": {"mean": 0.9811, "sd": 0.001},
        "teacher": {"mean": 0.99, "sd": 0.0},
    },
    "gain": {"mean": 0.0071, "sd": 0.0012},
    "ratios": {"parameters": 15.72, "size": 12.0, "speed": 11.04},
}


def test_table_of_controls_and_compression(tmp_path):
    page = "".join(
        f"<!-- results: rona {kind} -->\n<!-- end of results -->\n"
        for kind in ("controls", "compression")
    )
    assert tables.filled(page, tmp_path).count("Nothing was measured yet.\n") == 2
    unseen = {
        **RONA,
        "metric": "accuracy on unseen classes 6 and 9",
        "controls": {},
        "gain": None,
        "epsilon": "infinite",
    }
    small = {**RONA, "recipe": "examples/direct.toml", "setting": "compression", "published": None}
    figures = [{**RONA, "mean": 0.5}, RONA, unseen, small]
    (tmp_path / "rona.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    filled = tables.filled(page, tmp_path)
    rows = [line for line in filled.splitlines() if line.startswith("| ")]
    assert rows[1] == (
        "| [40 % public](../examples/rona.toml) | mnist | 2.000 | `mobile-10k` 98.71 (0.04) "
        "| 98.00 | 98.11 (0.10) | 99.00 (0.00) | - | +0.71 (0.12) | 0.9864 |"
    )
    assert rows[2] == (
        "| [40 % public](../examples/rona.toml): unseen classes 6 and 9 | mnist | infinite "
        "| `mobile-10k` 98.71 (0.04) | - | - | - | - | - | 0.9864 |"
    )
    assert rows[-1] == (
        "| compression | mnist | 2.000 | `mobile-10k` 98.71 (0.04) | 99.00 (0.00) | +0.29 "
        "| 15.7 | 12.0 | 11.0 | - | none |"
    )
    assert len(rows) == 4 + 2
    assert tables.filled(filled, tmp_path) == filled


DPDFD = {
    "dataset": "mnist",
    "epsilon": 0.9999,
    "mean": 0.9791,
    "sd": 0.0004,
    "draws": 3,
    "published": "0.9512 at 1",
    "seconds": 600.0,
    "recipe": "examples/direct.toml",
    "setting": "data-free",
    "student": "wavelet-70k",
    "controls": {"teacher": {"mean": 0.9825, "sd": 0.001}},
    "shares": {"teacher": 0.2, "student": 0.8, "generator": 0.0, "rest": 0.0},
}


def test_table_of_data_free_students(tmp_path):
    page = "<!-- results: dpdfd students -->\n<!-- end of results -->\n"
    assert "Nothing was measured yet.\n" in tables.filled(page, tmp_path)
    alone = {**DPDFD, "recipe": "examples/rona.toml", "controls": {}, "published": None}
    figures = [{**DPDFD, "draws": 1}, DPDFD, alone]
    (tmp_path / "dpdfd.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    rows = [line for line in tables.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| [data-free](../examples/direct.toml) | mnist | 1.000 | `wavelet-70k` 97.91 (0.04) "
        "| 98.25 (0.10) | +0.34 | 3 | 0.9512 at 1 | 10.0 | teacher 20%, student 80% |",
        "| [data-free](../examples/rona.toml) | mnist | 1.000 | `wavelet-70k` 97.91 (0.04) "
        "| - | - | 3 | none | 10.0 | teacher 20%, student 80% |",
    ]


def test_table_of_samples_keeps_rows_apart_and_shows_the_field(tmp_path):
    page = "<!-- results: dpdfd-synthetic samples -->\n<!-- end of results -->\n"
    field = [["DP-MERF", 0.6367, "Table 1"], ["FETA-Pro", 0.971, "2026"]]
    ours = {**DPDFD, "row": "(a) class as drawn", "field": field}
    labelled = {**ours, "row": "(b) class of the sanitised classifier", "mean": 0.98}
    figures = [labelled, ours]
    (tmp_path / "dpdfd-synthetic.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in figures)
    )
    rows = [line for line in tables.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1] == (
        "| mnist | 1.000 | ours, [(a) class as drawn](../examples/direct.toml) | 97.91 (0.04) | 3 "
        "| 10.0 minutes |"
    )
    assert "(b)" in rows[2]
    assert rows[3:] == [
        "| mnist | 1 | FETA-Pro (2026) | 97.1 | - | - |",
        "| mnist | 1 | DP-MERF (Table 1) | 63.7 | - | - |",
    ]


def test_tables_of_ablations_show_what_is_claimed_and_what_holds(tmp_path):
    page = "<!-- results: dpdfd-ablations noise -->\n<!-- end of results -->\n"
    point = {
        **{"figure": "noise", "curve": "one vector per batch", "x": {"sigma": 20}},
        **{"dataset": "mnist-small", "mean": 0.1, "controls": {"teacher": 0.97}},
        **{"claimed_epsilon": 0.0412, "epsilon": 161.3},
    }
    figures = [point, {**point, "x": {"sigma": 50}, "epsilon": "infinite", "controls": {}}]
    figures.append({**point, "figure": "terms"})
    (tmp_path / "dpdfd-ablations.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in figures)
    )
    rows = [line for line in tables.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| mnist | one vector per batch, sigma 20 | 10.00 | 97.00 | 0.041 | 161 |",
        "| mnist | one vector per batch, sigma 50 | 10.00 | - | 0.041 | infinite |",
    ]


def test_pictures_are_shown_once_they_are_drawn(tmp_path):
    page = "<!-- pictures: rona-figures -->\nold\n<!-- end of pictures -->\n"
    nothing = tables.filled(page, tmp_path, tmp_path)
    assert "Not drawn yet: hint epochs; distillation epochs;" in nothing
    assert tables.NOTHING in nothing
    assert "](" not in nothing
    for name in tables.PICTURES["rona-figures"]:
        (tmp_path / f"{name}.png").touch()
    (tmp_path / "rona-figures.jsonl").write_text('{"bench": "rona-figures"}\n')
    filled = tables.filled(page, tmp_path, tmp_path)
    assert filled.count("](pictures/rona-") == len(tables.PICTURES["rona-figures"])
    assert "yet" not in filled


def test_table_of_published_latents_has_a_column_per_epsilon(tmp_path):
    page = "<!-- results: pg latents -->\n<!-- end of results -->\n"
    one = {
        "dataset": "mnist",
        "variant": "PG-L",
        "asked": 2,
        "mean": 0.981,
        "sd": 0.001,
        "draws": 3,
        "controls": {"start": {"mean": 0.93, "sd": None}},
    }
    figures = [{**one, "mean": 0.5}, one, {**one, "asked": 8, "mean": 0.99, "sd": None}]
    figures.append({**one, "variant": "direct", "controls": {}})
    (tmp_path / "pg.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    rows = [line for line in tables.filled(page, tmp_path).splitlines() if line[:2] == "| "]
    assert rows == [
        "| data set | published | epsilon 2 | epsilon 8 | start | draws |",
        "| mnist | PG-L | 98.10 (0.10) | 99.00 | 93.00 | 3 |",
        "| mnist | direct | 98.10 (0.10) | - | - | 3 |",
    ]


def test_table_of_the_generator_shows_peers_and_growth(tmp_path):
    page = "<!-- results: pg-speed generator -->\n<!-- end of results -->\n"
    alone = {"weights": 25_000_000, "metric": "MB of arrays, drawn", "mean": 61.2, "peer": None}
    beside = {"peer": "loop, pdf", "peer_mean": 222.4, "ratio": 150.6}
    figures = [alone, {**alone, **beside, "metric": "CPU seconds, scores", "mean": 1.476}]
    (tmp_path / "pg-speed.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    rows = [line for line in tables.filled(page, tmp_path).splitlines() if line[:2] == "| "]
    assert rows[1:] == [
        "| 25,000,000 | MB of arrays, drawn | 61.20 | - | - | - |",
        "| 25,000,000 | CPU seconds, scores | 1.48 | loop, pdf | 222 | 151 times |",
    ]
