"""A model from a file: read without running code, known by its weights, bounded as any teacher."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file

from stillroom.errors import BadInput
from stillroom.models import AsPictures, build
from stillroom.private.model_file import model_teacher, read_model, weights_id
from stillroom.vocabulary import Pair, Sealed, Unit

# Torch's older exporter, which takes no seconds, has remarks on itself.
pytestmark = pytest.mark.filterwarnings("ignore")
GIVEN, CLASSES = (1, 4, 4), 3
PICTURES = AsPictures((4, 4), 16)
STEPS = 1000


def saved(folder, make="small", seed=0, change=None, name="model.safetensors"):
    network = build(f"private.makes:{make}", GIVEN, CLASSES, seed=seed)
    state = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    if change is not None:
        change(state)
    save_file(state, folder / name)
    return folder / name


def exported(folder, network, *, size=None, inputs=("x",), outputs=("logits",), name="m.onnx"):
    path = folder / name
    axes = {} if size else {one: {0: "N"} for one in (*inputs, *outputs)}
    torch.onnx.export(
        network.eval(),
        (torch.zeros(size or 2, *GIVEN),),
        path,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes=axes,
        dynamo=False,
    )
    return path


def read(path, make="small"):
    own = None if path.suffix == ".onnx" else f"private.makes:{make}"
    return read_model(path, own, GIVEN, CLASSES)


def teacher_of(path, make="small"):
    return model_teacher(read(path, make), PICTURES, CLASSES)


def answers(teacher, x):
    from stillroom.private.unprotected import GRID

    return teacher.outputs(x).open_bounded().reshape(len(x), CLASSES) / GRID


def queries(size=5):
    return torch.linspace(0, 1, size * 16).reshape(size, *GIVEN)


# -- what is read ---------------------------------------------------------------------------


def test_a_file_says_what_its_network_says(tmp_path):
    network = build("private.makes:small", GIVEN, CLASSES, seed=0)
    wanted = network(queries()).detach().numpy()
    told = answers(teacher_of(saved(tmp_path)), queries())
    assert told == pytest.approx(wanted, abs=2**-16)
    for size in (None, 2):  # of an ONNX file for pairs of pictures the last one is filled up
        path = exported(tmp_path, network, size=size)
        assert answers(teacher_of(path), queries()) == pytest.approx(wanted, abs=1e-4)


def test_pictures_that_come_from_a_generator_are_answered_like_others(tmp_path):
    network = build("private.makes:small", GIVEN, CLASSES, seed=0)
    for path in (saved(tmp_path), exported(tmp_path, network)):
        teacher, x = teacher_of(path), queries()
        wanted = answers(teacher, x)
        assert np.array_equal(answers(teacher, x.clone().requires_grad_() * 1), wanted)
        assert np.abs(wanted).max() > 0.1


def test_an_output_called_logits_is_taken_of_several(tmp_path):
    network = build("private.makes:Several", GIVEN, CLASSES, seed=0)
    path = exported(tmp_path, network, outputs=("features", "logits"))
    assert answers(teacher_of(path), queries()).shape == (5, CLASSES)


def test_nothing_of_it_is_shown(tmp_path):
    sealed = read(saved(tmp_path))
    assert repr(sealed) == "Sealed(<hidden>)"
    assert "Parameter" not in repr(sealed.open_sealed()) + repr(teacher_of(saved(tmp_path)))


def test_records_are_no_model(tmp_path):
    other = read_model(saved(tmp_path), "private.makes:small", GIVEN, CLASSES)
    for sealed, classes in ((Sealed([1, 2]), CLASSES), (other, CLASSES + 1)):
        with pytest.raises(BadInput, match="holds no model, or one for other"):
            model_teacher(sealed, PICTURES, classes)


# -- whose ledger it is ---------------------------------------------------------------------


def identity(path, make="small"):
    (own,) = read(path, make).sealed_ids().ids
    return own


def test_the_same_weights_are_the_same_model(tmp_path):
    first = identity(saved(tmp_path))
    assert first.startswith("weights ")

    def renamed(state):
        for old, new in (("1", "first"), ("2", "last")):
            for part in ("weight", "bias"):
                state[f"{new}.{part}"] = state.pop(f"{old}.{part}")

    def wider(state):
        state |= {name: tensor.double() for name, tensor in state.items()}

    def other_zero(state):
        state["1.bias"] *= 0

    def minus_zero(state):
        state["1.bias"] *= -0.0

    assert identity(saved(tmp_path, change=renamed), "Renamed") == first
    assert identity(saved(tmp_path, change=wider)) == first
    zeros = [identity(saved(tmp_path, change=change)) for change in (other_zero, minus_zero)]
    assert zeros[0] == zeros[1] != first


def test_other_weights_are_another_model(tmp_path):
    def moved(state):
        state["2.bias"][1] += 2**-20

    found = {
        identity(saved(tmp_path)),
        identity(saved(tmp_path, seed=1)),
        identity(saved(tmp_path, change=moved)),
    }
    assert len(found) == 3
    one, two = np.zeros((2, 3)), np.zeros((3, 2))
    assert weights_id([one]) != weights_id([two]) != weights_id([one, one])


def test_an_onnx_file_is_known_by_its_weights_and_not_by_its_bytes(tmp_path):
    network = build("private.makes:small", GIVEN, CLASSES, seed=0)
    path = exported(tmp_path, network)
    first = identity(path)
    graph = onnx.load(path)
    graph.doc_string = "saved again"
    graph.graph.initializer.reverse()
    onnx.save(graph, path)
    assert identity(path) == first
    assert identity(exported(tmp_path, build("private.makes:small", GIVEN, 3, seed=1))) != first


# -- what is refused, before anything is paid for -------------------------------------------


def nan(state):
    state["1.weight"][0, 0] = torch.nan


def missing(state):
    del state["2.bias"]


REFUSED = {
    "another make": ({"make": "small"}, "Renamed", "not those of this model; missing"),
    "a missing tensor": ({"change": missing}, "small", "missing: 2.bias"),
    "not a number": ({"change": nan}, "small", "not finite: 1.weight"),
    "no such make": ({}, "nothing_of_this_name", "has no callable"),
    "probabilities": ({"make": "Probabilities"}, None, "gives probabilities"),
    "dropout": ({"make": "Dropping"}, None, "the same picture each time, as dropout does"),
    "batch statistics": ({"make": "OfTheBatch"}, None, "changes with the pictures beside it"),
    "several outputs": ({"make": "Several"}, None, "gives tuple for 4 pictures"),
    "too many scores": ({"make": "Wide"}, None, r"gives \(4, 6\) for 4 pictures, not \(4, 3\)"),
    "no numbers": ({"make": "NoNumbers"}, None, "not finite, already for made-up pictures"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_weights_that_are_refused(tmp_path, kind):
    how, make, told = REFUSED[kind]
    with pytest.raises(BadInput, match=told):
        read(saved(tmp_path, **how), make or how["make"])


def test_files_that_are_refused(tmp_path):
    with pytest.raises(BadInput, match="there is no such file"):
        read(tmp_path / "nowhere.safetensors")
    for name in ("m.pt", "m.pth", "m.pkl", "m"):
        (tmp_path / name).write_bytes(pickle.dumps(print))
        with pytest.raises(BadInput, match=r"a pickle can run code .*save_file"):
            read(tmp_path / name)
    for name in ("m.safetensors", "m.onnx"):
        (tmp_path / name).write_bytes(b"\x80\x04 no such thing")
        with pytest.raises(BadInput, match="cannot be read"):
            read(tmp_path / name)
    saved(tmp_path, name="weights.safetensors")
    with pytest.raises(BadInput, match="with its make"):
        read_model(tmp_path / "weights.safetensors", None, GIVEN, CLASSES)
    path = saved(tmp_path)
    with pytest.raises(BadInput, match="cannot read pictures of shape"):
        read_model(path, "private.makes:small", (2, 4, 4), CLASSES)


def onnx_of(folder, *, change=lambda graph: None, make="small", **how):
    path = exported(folder, build(f"private.makes:{make}", GIVEN, CLASSES, seed=0), **how)
    graph = onnx.load(path)
    change(graph.graph)
    onnx.save(graph, path)
    return path


def onnx_nan(graph):
    array = numpy_helper.to_array(graph.initializer[0]).copy()
    array.flat[0] = np.nan
    graph.initializer[0].CopyFrom(numpy_helper.from_array(array, graph.initializer[0].name))


def onnx_two_inputs(graph):
    graph.input.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["N"]))


def onnx_other_size(graph):
    graph.input[0].type.tensor_type.shape.dim[3].dim_value = 5


def onnx_without_weights(graph):
    del graph.initializer[:]
    del graph.node[:]
    graph.node.append(helper.make_node("Flatten", ["x"], ["logits"]))


def onnx_elsewhere(graph):
    onnx.external_data_helper.set_external_data(graph.initializer[0], location="weights.bin")


ONNX_REFUSED = {
    "not a number": ({"change": onnx_nan}, "the weights are missing, or not all numbers"),
    "two inputs": ({"change": onnx_two_inputs}, r"takes .* and .*, not batches of floats"),
    "another size": ({"change": onnx_other_size}, r"cannot be read|not batches of floats"),
    "no weights": ({"change": onnx_without_weights}, "the weights are missing"),
    "weights elsewhere": ({"change": onnx_elsewhere}, "cannot be read"),
    "unnamed outputs": (
        {"make": "Several", "outputs": ("one", "two")},
        "gives 2 things and none is called `logits`",
    ),
    "probabilities": ({"make": "Probabilities"}, "gives probabilities"),
    "too many scores": ({"make": "Wide"}, r"gives \(4, 6\) for 4 pictures"),
}


@pytest.mark.parametrize("kind", ONNX_REFUSED)
def test_onnx_files_that_are_refused(tmp_path, kind):
    how, told = ONNX_REFUSED[kind]
    with pytest.raises(BadInput, match=told):
        read(onnx_of(tmp_path, **how))


def test_onnx_files_as_they_are_trained_are_refused(tmp_path):
    """Dropout and batch statistics that an export has left at work."""
    graph = onnx.load(onnx_of(tmp_path))
    (score,) = (value.name for value in graph.graph.output)
    for node in graph.graph.node:
        node.output[:] = ["raw" if name == score else name for name in node.output]
    true = numpy_helper.from_array(np.array(True), "true")
    half = numpy_helper.from_array(np.array(0.5, np.float32), "half")
    graph.graph.initializer.extend([true, half])
    graph.graph.node.append(helper.make_node("Dropout", ["raw", "half", "true"], [score]))
    onnx.save(graph, tmp_path / "dropout.onnx")
    with pytest.raises(BadInput, match="as dropout does"):
        read(tmp_path / "dropout.onnx")
    del graph.graph.node[-1]
    graph.graph.node.append(helper.make_node("ReduceMean", ["raw"], ["mean"], axes=[0]))
    graph.graph.node.append(helper.make_node("Sub", ["raw", "mean"], [score]))
    graph.opset_import[0].version = 13
    onnx.save(graph, tmp_path / "batch.onnx")
    with pytest.raises(BadInput, match="as under batch statistics"):
        read(tmp_path / "batch.onnx")


# -- what it says once it is paid for -------------------------------------------------------


def test_what_it_cannot_do_is_not_told(tmp_path):
    """K10: a refusal would tell of the model. Where it has no finite scores it says zero."""
    for make, x in (("Cracking", 2000 * queries()), ("Choosy", queries())):
        teacher = teacher_of(saved(tmp_path, make), make)
        x[2].flatten()[0] = 1
        told = answers(teacher, x)
        assert not told[2].any()
        assert told.any() == (make == "Choosy")
        student = np.full((5, CLASSES), 1 / CLASSES)
        row = teacher.residual(x, student, bound=1, steps=STEPS).open_bounded()
        assert 0 <= int((row.astype(object) ** 2).sum()) <= STEPS**2


def test_any_two_models_are_at_most_the_diameter_apart(tmp_path):
    """The worst pair reaches it: noise is neither missing nor wasted."""

    def sure_of(place):
        def change(state):
            state["2.weight"] *= 0
            state["2.bias"] *= 0
            state["2.bias"][place] = 100

        return change

    # In doubt between two classes: a teacher that is sure of either pulls it the other way.
    student = np.tile([0.5, 0.5, 0.0], (5, 1))
    changes = [(0, None), (1, None), (2, None), *((0, sure_of(k)) for k in range(CLASSES))]
    rows = []
    for seed, change in changes:
        teacher = teacher_of(saved(tmp_path, seed=seed, change=change))
        answer = teacher.residual(queries(), student, bound=0.1, steps=STEPS)
        assert answer.sensitivity.bounds[Pair.of(Unit.ENTITY)] == 4 * STEPS**2
        rows.append(answer.open_bounded().astype(np.float64))
    apart = max(float(np.linalg.norm(a - b)) for a in rows for b in rows)
    assert 0.95 * 2 * STEPS < apart <= 2 * STEPS


def test_a_model_is_one_unit(tmp_path):
    told = read(saved(tmp_path)).sealed_ids()
    assert (len(told.ids), told.persons, told.from_content) == (1, None, False)
