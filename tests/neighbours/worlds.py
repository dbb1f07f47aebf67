"""Data sets of some twenty digits, their neighbours, and the pipelines they go through."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from features.enlarged import pictures
from stillroom.data import Dataset, Split

KEY = "stillroom"
CLASSES = 4


@dataclass(frozen=True)
class World:
    """Records with ids of their own, and the part each of them falls into.

    Args:
        x: pictures of 16x16.
        y: their classes.
        ids: their names; None where they are made from content.
        persons: whose they are, if that is known.
    """

    x: np.ndarray
    y: np.ndarray
    ids: tuple[str, ...] | None
    persons: tuple[str, ...] | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """What an npz file holds."""
        found = {"x": self.x, "y": self.y}
        if self.ids is not None:
            found["ids"] = np.array(self.ids)
        if self.persons is not None:
            found["persons"] = np.array(self.persons)
        return found

    def parts(self, public: str, test: str) -> dict[str, list[int]]:
        """Positions of the records in each part."""
        data = Dataset(self.x, self.y, CLASSES, ids=self.ids or (), persons=self.persons)
        split = Split.by_fraction(data, KEY, public, test)
        place = {name: i for i, name in enumerate(data.ids)}
        parts = {"public": split.public, "sensitive": split.sensitive, "test": split.test}
        return {name: [place[i] for i in part.ids] for name, part in parts.items()}

    def without(self, *positions: int) -> World:
        kept = [i for i in range(len(self.y)) if i not in positions]
        return World(
            self.x[kept],
            self.y[kept],
            None if self.ids is None else tuple(self.ids[i] for i in kept),
            None if self.persons is None else tuple(self.persons[i] for i in kept),
        )

    def plus(self, x: np.ndarray, y: int, name: str, person: str = "new", at: int = -1) -> World:
        at = len(self.y) if at < 0 else at

        def joined(names: tuple[str, ...] | None, one: str) -> tuple[str, ...] | None:
            return None if names is None else (*names[:at], one, *names[at:])

        x = np.asarray(x, dtype=np.float64)
        return World(
            np.concatenate([self.x[:at], x[None], self.x[at:]]),
            np.concatenate([self.y[:at], [y], self.y[at:]]),
            joined(self.ids, name),
            joined(self.persons, person),
        )

    def changed(self, position: int, x: np.ndarray, y: int) -> World:
        new_x, new_y = self.x.copy(), self.y.copy()
        new_x[position], new_y[position] = x, y
        return replace(self, x=new_x, y=new_y)


def world(size: int = 40, *, named: bool = True, persons: bool = False) -> World:
    """Some digits of the first classes; two persons in three own two of them."""
    x, y = pictures(None)
    few = np.flatnonzero(y < CLASSES)[:size]
    ids = tuple(f"record {i}" for i in range(size)) if named else None
    owners = tuple(f"person {i // 2}" for i in range(size)) if persons else None
    return World(x[few].astype(np.float64), y[few].astype(np.int64), ids, owners)


def name_in(part: str, public: str, test: str, taken: World) -> str:
    """A new name that falls into a part."""
    for number in range(1000):
        name = f"newcomer {number}"
        if name in (taken.ids or ()) or name in (taken.persons or ()):
            continue
        more = World(np.ones((1, 16, 16)), np.zeros(1, dtype=np.int64), (name,))
        if taken.persons is not None:
            more = replace(more, persons=(name,))
        if more.parts(public, test)[part]:
            return name
    raise AssertionError("no name falls there")


STRANGE = {
    "another digit": lambda x: x[::-1].copy(),
    "zeros": lambda x: np.zeros_like(x),
    "1e37": lambda x: np.where(x > 0, 1e37, -1e37),
    "nearly too large for floats": lambda x: np.where(x > 3, 1e300, 0.0),
}
"""What a newcomer looks like."""

PERSONS = 'unit = "person"\nmax_records_per_person = 3\n'
TESTED = "evaluation_records_per_person = 2\n"
_DATA = """
[data]
source = "data.npz"
classes = 4
declared_size = 30
test = "{test}"
test_is_public = {open}
{data}
[engine]
kind = "serial"
[features]
full_scale = 16
{features}
"""
_TRAINING = "[training]\nsteps = 2\nrate = {rate}\n{training}\n"
_PRIVACY = "[privacy]\nepsilon = 4\n{privacy}\n"
_SKETCH = """
[sketch]
mu = "1/2"
coefficients = 32
directions = 4
centres = 2
lloyd = 1
samples = 150
"""
_STUDENT = '[student]\nmodel = "linear"\nsamples = 150\nepochs = 1\n'
_RONA = """
[rona]
student = "mlp"
auxiliary = "mlp"
auxiliary_epochs = 1
self_epochs = 1
distillation_epochs = 1
rounds = 1
{rona}
"""
_GENERATOR = '[generator]\nmodel = "mlp"\nlatent = 4\nwidth = 8\nsteps = 2\n'
_TEACHERS = "[teachers]\ncount = 5\nshard_cap = 12\nvotes = 6\n{teachers}\n"


@dataclass(frozen=True)
class Pipeline:
    """A recipe, and what it needs of its worlds."""

    recipe: str
    public: str = "0"
    test: str = "1/4"
    persons: bool = False
    named: bool = True


def direct(
    features='name = "pixels"', training="", more="", data="", privacy="", *, open="false",
    rate='"1/2"', **needs,
):  # fmt: skip
    """A recipe of method direct."""
    text = _DATA.format(test="1/4", open=open, data=data, features=features)
    text += _TRAINING.format(rate=rate, training=training) + _PRIVACY.format(privacy=privacy)
    return Pipeline(text + more, **needs)


def rona(source, *, mode="certified", own="", rona="", more="", open="false", persons=False):
    """A recipe of method rona."""
    data = 'public = "2/5"\n' + (PERSONS if persons else "")
    text = f'method = "rona"\nmode = "{mode}"\nsource = "{source}"\npurpose = "benchmark"\n'
    text += _DATA.format(test="1/4", open=open, data=data, features='name = "pixels"')
    privacy = _PRIVACY.format(privacy=TESTED if persons else "")
    return Pipeline(
        text + _RONA.format(rona=rona) + own + privacy + more, public="2/5", persons=persons
    )


def dpdfd(source, own, *, samples=20, generated=0, open="false", persons=False):
    """A recipe of method dpdfd with a source that comes through the gate."""
    text = f'method = "dpdfd"\nsource = "{source}"\npurpose = "benchmark"\n'
    data = PERSONS if persons else ""
    text += _DATA.format(test="1/4", open=open, data=data, features='name = "pixels"')
    text += f'[dpdfd]\nstudent = "mlp"\nrounds = 2\nsamples = {samples}\nstructured = 10\n'
    text += f"mixed = 10\ngenerated = {generated}\nepochs = 1\nbatch = 10\nfrequencies = 20\n"
    privacy = _PRIVACY.format(privacy=TESTED if persons else "")
    return Pipeline(text + own + privacy, persons=persons)


def dpdfd_labels():
    """A recipe of method dpdfd that trains on records of which all but the labels is public."""
    text = 'method = "dpdfd"\nsource = "plain"\npurpose = "benchmark"\n'
    unit = 'unit = "label"\n'
    text += _DATA.format(test="1/4", open="false", data=unit, features='name = "pixels"')
    text += '[dpdfd]\nstudent = "mlp"\n[published]\ndirect = true\nreading = "per-sample"\n'
    return Pipeline(text + "iterations = 4\nbatch = 3\n" + _PRIVACY.format(privacy=""))


def dpdfd_plain(own, *, mode="certified", open="false"):
    """A recipe of method dpdfd with an ordinary teacher."""
    text = f'method = "dpdfd"\nmode = "{mode}"\nsource = "plain"\npurpose = "benchmark"\n'
    text += _DATA.format(test="1/4", open=open, data="", features='name = "pixels"')
    text += '[dpdfd]\nstudent = "mlp"\n[plain]\nteacher = "mlp"\nepochs = 1\n'
    text += _GENERATOR.replace("steps = 2\n", "")
    text += f"[published]\niterations = 2\nbatch = 4\n{own}" + _PRIVACY.format(privacy="")
    return Pipeline(text)


def pg(own, *, more="", features='name = "pixels"', data="", privacy="", **needs):
    """A recipe of method pg: models on shards."""
    text = 'method = "pg"\npurpose = "benchmark"\n'
    text += _DATA.format(test="1/4", open="false", data=data, features=features)
    return Pipeline(text + own + more + _PRIVACY.format(privacy=privacy), **needs)


def votes(own, *, persons=False):
    """A recipe of method votes; the folder of ledgers has the name that is not compared."""
    text = 'method = "votes"\npurpose = "benchmark"\nledger = "ledger.sqlite"\n'
    public = 'public = "2/5"\n' + (PERSONS if persons else "")
    text += _DATA.format(test="1/4", open="true", data=public, features='name = "pixels"')
    text += "[entities]\ncount = 5\nlargest = 9\n" + own
    text += '[student]\nmodel = "mlp"\nneighbours = 3\nepochs = 1\nlearnt = 4\n'
    return Pipeline(text + _PRIVACY.format(privacy=""), public="2/5", persons=persons)


_HEADS = '[collection]\nmodels = 5\nshard_cap = 12\nstart = "{start}"\n[pg]\n'
_NETS = (
    '[collection]\nmodel = "mlp"\nmodels = 3\nshard_cap = 12\nepochs = 1\nbatch = 4\n'
    'learning_rate = 0.01\n[pg]\nmap = "random"\nlatents = 6\n'
)
_WEIGHTS = 'class_weights = [0.25, 1, 0.001, "1/2"]\n'
_NETWORK = 'model = "mlp"\nclip = 1\nlearning_rate = 0.5\n'
PIPELINES = {
    "linear": direct(),
    "linear, all in each step": direct(rate="1", features='name = "edges"', training=_WEIGHTS),
    "linear, public test": direct(open="true", features='name = "edges"'),
    "ids from content": direct(named=False),
    "persons": direct(
        training=_WEIGHTS,
        data=PERSONS,
        privacy=TESTED,
        persons=True,
    ),
    "records of persons": direct(persons=True),
    "network": direct(features="", training=_NETWORK),
    "network, ghost": direct(
        features="", training=_NETWORK.replace("mlp", "student-10k") + "ghost = true\n" + _WEIGHTS
    ),
    "network of persons": direct(
        features="", training=_NETWORK, data=PERSONS, privacy=TESTED, persons=True
    ),
    "network of persons, ghost": direct(
        features="",
        training=_NETWORK + "ghost = true\n",
        data=PERSONS,
        privacy=TESTED,
        persons=True,
    ),
    "sketch": direct(more=_SKETCH),
    "sketch of persons": direct(
        data=PERSONS,
        privacy=TESTED,
        more=_SKETCH + "whitened = 1\n",
        persons=True,
    ),
    "student of the sketch": direct(more=_SKETCH + _STUDENT),
    "scattering": direct(
        features='name = "scattering"\ncomponents = 8\nfitted_on = "sketch"\n', more=_SKETCH
    ),
    "rona, teacher": rona(
        "trained", own=_TRAINING.format(rate='"1/2"', training="public_share = 0.1\n")
    ),
    "rona of persons, teacher": rona(
        "trained",
        own=_TRAINING.format(rate='"1/2"', training="public_share = 0.1\n"),
        persons=True,
    ),
    "rona of persons, votes": rona(
        "ensemble", own=_TEACHERS.format(teachers=""), rona='loss = "softened"\n', persons=True
    ),
    "rona, votes": rona("ensemble", own=_TEACHERS.format(teachers=""), rona='loss = "softened"\n'),
    "rona, gated": rona(
        "ensemble",
        own=_TEACHERS.format(teachers="threshold = 0.2\nasked = 8\n"),
        rona='loss = "softened"\n',
    ),
    "rona, hints": rona(
        "ensemble",
        own=_TEACHERS.format(teachers="hints = 4\n"),
        rona='loss = "softened"\nhint_epochs = 1\nhint_layer = 3\nguided_layer = 2\n',
    ),
    "rona, as published": rona(
        "plain",
        mode="as-published",
        own="[plain]\nepochs = 1\n",
        rona="batch = 4\nqueries = 1\n",
    ),
    "rona, residual": rona(
        "plain",
        mode="as-published",
        own='[plain]\nepochs = 1\n[published]\nreading = "residual"\n',
        rona="batch = 4\nqueries = 1\nhint_epochs = 1\nhint_layer = 3\nguided_layer = 2\n",
    ),
    "dpdfd, teacher": dpdfd(
        "trained", _TRAINING.format(rate='"1/2"', training="") + _SKETCH + _GENERATOR, generated=10
    ),
    "dpdfd, votes": dpdfd("ensemble", _TEACHERS.format(teachers="") + _SKETCH),
    "dpdfd, sketch": dpdfd("sketch", _SKETCH),
    "dpdfd of persons, teacher": dpdfd(
        "trained", _TRAINING.format(rate='"1/2"', training="") + _SKETCH, persons=True
    ),
    "dpdfd of persons, votes": dpdfd(
        "ensemble", _TEACHERS.format(teachers="") + _SKETCH, persons=True
    ),
    "dpdfd, certified teacher": dpdfd_plain(""),
    "dpdfd, labels": dpdfd_labels(),
    "pg, heads": pg(_HEADS.format(start="sketch") + "rounds = 2\n", more=_SKETCH),
    "pg, exponential choices": pg(
        _HEADS.format(start="common") + 'mechanism = "exponential"\nrounds = 2\n'
    ),
    "pg, selected": pg(
        _HEADS.format(start="sketch") + 'map = "groups"\nlatents = 9\nretries = 3\n', more=_SKETCH
    ),
    "pg, persons": pg(
        _HEADS.format(start="common") + "rounds = 2\n",
        data=PERSONS,
        privacy=TESTED,
        persons=True,
    ),
    "pg, networks": pg(_NETS, features=""),
    "votes, secure sum": votes("[votes]\nqueries = 6\nsmoothing = 1\n"),
    "votes of persons": votes("per_person = 2\n[votes]\nqueries = 6\n", persons=True),
    "votes, gated and silent": votes(
        'participation = "4/5"\n[votes]\nqueries = 4\ntested = 6\nthreshold = "1/5"\n'
        "abstain = 0.3\n"
    ),
    "votes, reports": votes('[votes]\nreport = "unary"\nqueries = 6\nselection = "groups"\n'),
    "dpdfd, teachers on shards": dpdfd_plain(
        'teachers = 3\nreading = "per-sample"\nsharing = "disjoint"\n', mode="as-published"
    ),
}
