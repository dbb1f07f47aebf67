"""Recipes of method rona over the built-in digits, small enough for a test."""

from __future__ import annotations

import json

from stillroom.gate import Budget, Ledger
from stillroom.sources import Progress

BUDGET = Budget(20.0, 1e-5)

_TEACHER = "[training]\nsteps = 6\nrate = 1\npublic_share = 0.1\n"
_ENSEMBLE = "[teachers]\ncount = 20\nshard_cap = 80\nvotes = 60\n"
_PLAIN = '[plain]\nteacher = "linear"\nepochs = 1\n'
_HINTED = "hint_epochs = 1\nhint_layer = 3\nguided_layer = 2\n"

SOURCES = {
    "trained": ("", _TEACHER),
    "ensemble": ('loss = "softened"\nself_epochs = 1\ndistillation_epochs = 2\n', _ENSEMBLE),
    "hinted": (
        'loss = "softened"\nself_epochs = 1\ndistillation_epochs = 2\n' + _HINTED,
        _ENSEMBLE + "hints = 30\n",
    ),
    "plain": ("self_epochs = 1\ndistillation_epochs = 1\nbatch = 64\n", _PLAIN),
}
"""What [rona] says, and the part of the source."""

RECIPE = """method = "rona"
{top}
[data]
source = "digits"
public = "2/5"
test = "{test}"
test_is_public = {public}
declared_size = 900
{data}
[features]
name = "pixels"
full_scale = 16
[engine]
kind = "serial"
[rona]
student = "mlp"
auxiliary = "mlp"
auxiliary_epochs = 1
{rona}
[privacy]
epsilon = {epsilon}
{privacy}
"""


def recipe_in(
    folder,
    kind="trained",
    *,
    purpose="benchmark",
    public="true",
    data="",
    rona="",
    epsilon=3.0,
    privacy="",
    part=None,
):
    """A recipe of a source; `hinted` is the ensemble with hints."""
    folder.mkdir(exist_ok=True)
    source = "ensemble" if kind == "hinted" else kind
    mode = "as-published" if kind == "plain" else "certified"
    said, own = SOURCES[kind]
    text = RECIPE.format(
        top=f'mode = "{mode}"\nsource = "{source}"\npurpose = "{purpose}"',
        public=public,
        test="1/4" if public == "true" else "1/10",
        data=data,
        rona=said + rona,
        epsilon=epsilon,
        privacy=privacy,
    )
    file = folder / "recipe.toml"
    file.write_text(text + (own if part is None else part))
    return file


def weights_of(bundle):
    """The released student, to the bit."""
    return (bundle / "model.safetensors").read_bytes()


def certificate_of(bundle):
    return json.loads((bundle / "certificate.json").read_text())


def drawn(folder, place=0, ledger="ledger.sqlite"):
    """Rows that the ledger recorded as drawn for a wish of the first block."""
    if not (folder / ledger).exists():
        return 0
    rows = Ledger.open(folder / ledger).store.rows("kind = 'draw'")
    return sum(row.body["count"] for row in rows if row.body["wish"] == place)


class Phase:
    """Follows a run, and stops it after an epoch of the student's training."""

    def __init__(self, stop_at=None):
        self.now, self.seen, self.stop_at, self.epochs = "", [], stop_at, []

    @property
    def progress(self):
        return Progress(self.tell, self.on_step)

    def tell(self, line):
        self.now = line
        self.seen.append(line)

    def on_step(self, step, steps):
        if self.now == "student":
            self.epochs.append((step, steps))
            if step == self.stop_at:
                raise KeyboardInterrupt
