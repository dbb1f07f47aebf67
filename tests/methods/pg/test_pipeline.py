"""Method pg, certified: heads and networks, rounds that were cut off, refusals before payment."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest

from methods.pictures import charged
from quick_onnx import use_quick_exporter
from stillroom.errors import BadInput
from stillroom.gate import Budget, Ledger
from stillroom.methods.pg import job
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify
from stillroom.release.compact import tensors_of_compact
from stillroom.release.tensor_file import arrays_in
from stillroom.vocabulary import Pair, Unit

BUDGET = Budget(8.0, 1e-5)
HEAD = """
method = "pg"
[data]
source = "digits"
test = "1/4"
test_is_public = true
declared_size = 1350
{data}
[engine]
kind = "serial"
[features]
name = "pixels"
full_scale = 16
[privacy]
epsilon = 8
{privacy}
"""
SKETCH = '[sketch]\nmu = "1/2"\ncoefficients = 40\ndirections = 10\ncentres = 2\nsamples = 600\n'
HEADS = '[collection]\nmodels = 200\nshard_cap = 15\nstart = "{start}"\n{more}\n[pg]\n{pg}\n'
GROUPED = 'publisher = "pgp"\nmap = "groups"\n'
NETS = """
[collection]
model = "{model}"
models = 12
shard_cap = 150
start = "{start}"
epochs = 2
batch = 32
learning_rate = 0.01
{more}
[pg]
{pg}
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    use_quick_exporter(monkeypatch)


def recipe_in(folder, own, more="", data="", privacy="", purpose="release"):
    file = folder / "recipe.toml"
    head = f'purpose = "{purpose}"\n' + HEAD.format(data=data, privacy=privacy)
    file.write_text(head + own + more)
    return file


def heads(pg, start="common", more=""):
    return HEADS.format(pg=pg, start=start, more=more)


def nets(pg, start="common", more="", model="linear"):
    return NETS.format(pg=pg, start=start, more=more, model=model)


def released(folder, *given, name="out", **more):
    made = release(recipe_in(folder, *given, **more), folder / name, budget=BUDGET)
    assert verify(folder / name)["recipe"] == "comes to what the certificate says"
    return made


def accuracy(made):
    return made["sections"]["evaluation"]["accuracy"]


def draws(folder):
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        rows = list(ledger.store.rows("kind = 'draw'"))
        return [row.body["count"] for row in rows]


# -- what is published ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "more", "least", "drawn"),
    [
        (heads("rounds = 6\nmomentum = 0.5\nclip = 2.0", more="learning_rate = 3.0"), "", 0.4, 6),
        (
            heads('mechanism = "exponential"\nrounds = 3\nradius = 0.5\nbandwidth = 0.1',
                  more="learning_rate = 3.0"),
            "", 0.15, 3,
        ),
        (heads("rounds = 4", "sketch"), SKETCH, 0.4, 4),
        (heads(GROUPED + "latents = 80\nrounds = 3", "sketch"), SKETCH, 0.25, 3),
        (heads("retries = 4", "sketch"), SKETCH, 0.25, 1),
        (nets('map = "random"\nlatents = 60\nclip = 0.5\nrounds = 2', "sketch"), SKETCH, 0.15, 2),
        (
            nets('map = "directions"\nlatents = 4\npublic_runs = 6\nclip = 0.5', "sketch",
                 more="start_steps = 5\nstart_rate = 0.01"),
            SKETCH, 0.15, 1,
        ),
    ],
)  # fmt: skip
def test_a_model_of_published_latents(tmp_path, own, more, least, drawn):
    made = released(tmp_path, own, more)
    assert accuracy(made) > least
    assert made["headline"]["epsilon"] <= 8
    counts = draws(tmp_path)
    sketch = 0 if not more else 7
    assert len(counts) - drawn in range(sketch + 1)
    started = [c["name"] for c in made["sections"].get("controls", {"models": []})["models"]]
    assert started == (["start"] if more else [])
    assert "disjoint shards" in made["assumptions"]
    assert made["sections"]["published"]["status"].startswith("none for this data set")


def test_persons_share_a_shard(tmp_path):
    from stillroom.data import digits

    data = digits()
    owners = np.array([f"p{i // 2}" for i in range(len(data))])
    np.savez(tmp_path / "scans.npz", x=data.x, y=data.y, persons=owners)
    file = recipe_in(
        tmp_path,
        heads("rounds = 2"),
        data='unit = "person"\nmax_records_per_person = 2\nclasses = 10',
    )
    file.write_text(file.read_text().replace('"digits"', '"scans.npz"'))
    made = release(file, tmp_path / "out", budget=Budget(8.0, 1e-5, Pair.of(Unit.PERSON)))
    verify(tmp_path / "out")
    assert made["unit"] == "person"


def test_a_public_part_may_be_the_start(tmp_path):
    made = released(tmp_path, heads("rounds = 2", "public"), data='public = "1/5"')
    (start,) = made["sections"]["controls"]["models"]
    assert start["public_only"]
    assert accuracy(made) > 0.4


# -- fewer weights, fewer bits ------------------------------------------------------------------

FEWER = {
    "heads": heads('publisher = "pgc"\nkept = "1/2"\nrounds = 3', "sketch", 'scale = "diagonal"'),
    "networks": nets(
        'publisher = "pgc"\nkept = "1/3"\ncodebook_bits = 4\nresidual_bits = 4\nclip = 0.5',
        "sketch",
    ),
    "groups": nets(
        'publisher = "pgc"\nkept = "1/3"\nmap = "groups"\nlatents = 40\nclip = 0.5', "sketch"
    ),
}


@pytest.mark.parametrize("kind", FEWER)
def test_weights_that_matter_less_are_left_out(tmp_path, kind):
    made = released(tmp_path, FEWER[kind], SKETCH)
    compact = tensors_of_compact((tmp_path / "out" / "compact.safetensors").read_bytes())
    model = arrays_in((tmp_path / "out" / "model.safetensors").read_bytes())
    for name, array in compact.items():
        assert array.tobytes() == model[name].tobytes()
    weights = max(compact.values(), key=lambda array: array.size)
    share = 1 / 2 if kind == "heads" else 1 / 3
    assert (weights != 0).mean() == pytest.approx(share, abs=0.08)
    told = made["sections"]["compression"]
    assert told["student"]["compact_size"] < told["teacher"]["size"]


def test_compression_leaves_the_certificate_as_it_was(tmp_path):
    """The same latents, with and without codes: every figure of privacy is equal."""
    parts = []
    for bits in (8, 1):
        (tmp_path / str(bits)).mkdir()
        own = FEWER["heads"].replace("rounds = 3", f"rounds = 3\ncodebook_bits = {bits}")
        made = released(tmp_path / str(bits), own, SKETCH, purpose="benchmark")
        party = made["parties"][0]
        parts.append(json.dumps([made["headline"], party["blocks"][0]["wishes"]], sort_keys=True))
    assert parts[0] == parts[1]


# -- cut off, and short of budget -----------------------------------------------------------------


@pytest.mark.parametrize(
    "own", [heads("rounds = 4", "sketch"), nets('map = "random"\nlatents = 9\nrounds = 2')]
)
def test_a_cut_off_run_goes_on(tmp_path, monkeypatch, own):
    more = SKETCH if "sketch" in own else ""
    file = recipe_in(tmp_path, own, more)
    honest, asked = job.PgJob._asked, []

    def dying(self, *given):
        asked.append(given)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return honest(self, *given)

    monkeypatch.setattr(job.PgJob, "_asked", dying)
    with pytest.raises(KeyboardInterrupt):
        release(file, tmp_path / "out", budget=BUDGET)
    before = draws(tmp_path)
    release(file, tmp_path / "out", budget=BUDGET)
    verify(tmp_path / "out")
    rounds = 4 if more else 2
    # The first round is replayed, and not asked again.
    assert len(asked) == rounds + 1
    assert draws(tmp_path)[: len(before)] == before
    assert charged(tmp_path)[0] == 1


def test_the_best_of_several_runs_is_one_draw(tmp_path):
    made = released(tmp_path, heads("retries = 6", "sketch"), SKETCH)
    wishes = made["parties"][0]["blocks"][0]["wishes"]
    assert (wishes[0]["mechanism"]["mechanism"], wishes[0]["reserved"]) == ("private-selection", 1)
    assert "nobody can watch" in made["assumptions"]["number of runs"]


@pytest.mark.slow
def test_rounds_end_with_the_budget(tmp_path):
    made = release(
        recipe_in(tmp_path, heads("rounds = 40"), privacy='on_exhausted = "stop"'),
        tmp_path / "out",
        budget=Budget(4.0, 1e-5),
    )
    verify(tmp_path / "out")
    (reserved,) = [w["reserved"] for w in made["parties"][0]["blocks"][0]["wishes"]]
    assert 1 <= reserved < 40
    assert draws(tmp_path) == [1] * reserved
    assert any("rounds were paid for" in warning for warning in made["warnings"])


# -- refusals before payment ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (heads(GROUPED + "latents = 5", "sketch"), "latents for"),
        (heads('map = "random"\nlatents = 5000', "sketch"), "latents for"),
        (nets('map = "random"\nlatents = 9', model="mobile-10k"), "beside its weights"),
        (nets("", more="parameters = 7"), "the recipe says 7"),
        (nets("", model="conv-largest"), "there is no model"),
    ],
)
def test_what_does_not_fit_costs_nothing(tmp_path, own, said):
    more = SKETCH if "sketch" in own else ""
    with pytest.raises(BadInput, match=said):
        release(recipe_in(tmp_path, own, more), tmp_path / "out", budget=BUDGET)
    ledger = tmp_path / "ledger.sqlite"
    if ledger.exists():
        with closing(Ledger.open(ledger)) as found:
            assert not list(found.store.rows("kind = 'block'"))
