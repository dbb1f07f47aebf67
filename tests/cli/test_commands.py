"""The installed command, used as people use it: right input, wrong input, interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drawing import drawn
from processes import INTERRUPTIBLE
from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
from stillroom.vocabulary import Bounded

STILLROOM = Path(sys.executable).parent / "stillroom"
VOTES = NoisyVotes(teachers=5, classes=3, sigma=40)


def stillroom(*words, code=0):
    done = subprocess.run(
        [STILLROOM, *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.sqlite", ids=["a", "b"])
    made.set_budget(Budget(2.0, 1e-5), reason="a test")
    way = Gate(made, ids=["a", "b"]).reserve(VOTES, 3)
    drawn(way, Bounded(np.array([[3, 1, 1]]), VOTES.sensitivity))
    made.close()
    return made.path


def test_plan_prices():
    words = "--teachers 250 --classes 10 --queries 2000 --sigma 40 --delta 1e-5 --json"
    document = json.loads(stillroom("plan", *words.split()))
    assert document["epsilon"]["pld"] == pytest.approx(7.51, abs=0.02)
    assert document["epsilon"]["rdp"] == pytest.approx(8.08, abs=0.02)
    assert document["label_accuracy"]["0.6"] == pytest.approx(0.954, abs=0.002)
    document = json.loads(stillroom("plan", "--sigma", 100, "--queries", 500, "--json"))
    assert document["epsilon"]["certified"] == pytest.approx(1.20, abs=0.02)


def test_plan_calibrates_and_the_answer_can_be_plugged_back():
    found = json.loads(stillroom("plan", "--epsilon", 1, "--queries", 200, "--json"))
    back = json.loads(stillroom("plan", "--sigma", found["sigma"], "--queries", 200, "--json"))
    assert back["epsilon"]["certified"] <= 1


def test_plan_for_people():
    shown = stillroom("plan", "--teachers", 250, "--queries", 2000, "--sigma", 40)
    for word in ("PLD", "RDP", "certified", "7.512", "8.088", "consensus", "95.4%"):
        assert word in shown


@pytest.mark.parametrize(
    "words",
    [
        "--epsilon 0 --queries 5",
        "--epsilon -1 --queries 5",
        "--epsilon nan --queries 5",
        "--sigma 0 --queries 5",
        "--sigma much --queries 5",
        "--sigma 5 --queries 5 --delta 1",
        "--sigma 5 --queries 5 --delta 0",
        "--sigma 5 --queries 5 --classes 1",
        "--sigma 5 --queries 5 --classes many",
        "--sigma 5",
        "",
    ],
)
def test_bad_plans_end_2_with_a_remedy(words):
    message = stillroom("plan", *words.split(), code=2)
    assert "what to do" in message or "Usage" in message
    assert "Traceback" not in message


def test_ledger_show_and_budget(ledger):
    shown = json.loads(stillroom("ledger", "show", ledger, "--json"))
    assert shown["purpose"] == "release"
    assert shown["blocks"][0]["wishes"] == [
        {"mechanism": "noisy-votes", "reserved": 3, "drawn": 1, "lost": 0, "open": 0}
    ]
    assert shown["budgets"][0]["spent"] == shown["blocks"][0]["epsilon"]
    assert "noisy-votes" in stillroom("ledger", "show", ledger)
    stillroom("ledger", "budget", "set", ledger, "--epsilon", 3, "--reason", "agreed")
    budgets = json.loads(stillroom("ledger", "budget", "show", ledger, "--json"))
    assert [b["epsilon"] for b in budgets] == [3]
    assert budgets[0]["reason"] == "agreed"


def test_ledger_without_a_budget_says_so(tmp_path):
    Ledger.create(tmp_path / "l.sqlite", ids=["a"], purpose="audit").close()
    assert "No budget is set" in stillroom("ledger", "show", tmp_path / "l.sqlite")


@pytest.mark.slow
def test_ledger_export_and_verify(ledger, tmp_path):
    head = json.loads(stillroom("ledger", "show", ledger, "--json"))["head"]
    export = tmp_path / "export.json"
    stillroom("ledger", "export", ledger, "-o", export)
    assert json.loads(stillroom("ledger", "export", ledger)) == json.loads(export.read_text())
    for file in (ledger, export):
        assert "verifies" in stillroom("ledger", "verify", file, "--head", head)
    message = stillroom("ledger", "verify", export, "--head", "1:" + "0" * 64, code=4)
    assert "seen before" in message
    assert "overwritten" in stillroom("ledger", "export", ledger, "-o", export, code=2)


def test_a_corrupted_ledger_ends_4_and_a_missing_one_2(ledger):
    content = bytearray(ledger.read_bytes())
    place = content.find(b'"reason":"a test"')
    content[place + 10] ^= 1
    ledger.write_bytes(bytes(content))
    for command in ("show", "verify", "export"):
        message = stillroom("ledger", command, ledger, code=4)
        assert "what to do" in message
    stillroom("ledger", "budget", "set", ledger, "--epsilon", 9, "--reason", "x", code=4)
    assert ledger.read_bytes() == bytes(content)
    assert "no ledger" in stillroom("ledger", "show", ledger.parent / "none", code=2)


def test_the_ledger_of_another_data_set_ends_2(ledger):
    message = stillroom("ledger", "verify", ledger, "--data", "digits", code=2)
    assert "not one of these records" in message


@pytest.mark.parametrize("words", ["--epsilon 0", "--epsilon 1 --delta 1", "--epsilon 1 --for me"])
def test_bad_budgets_end_2_and_write_nothing(ledger, words):
    before = ledger.read_bytes()
    stillroom("ledger", "budget", "set", ledger, *words.split(), "--reason", "x", code=2)
    assert ledger.read_bytes() == before


def test_every_command_has_help_with_an_example():
    commands = [
        "plan",
        "demo",
        "release",
        "verify",
        "predict",
        "recipe explain",
        "keys make",
        "ledger show",
        "ledger export",
        "ledger verify",
    ]
    commands += ["ledger budget set", "ledger budget show", "data list", "data show", "data import"]
    for command in commands:
        assert "Example: stillroom " + command in stillroom(*command.split(), "--help")


def test_demo(tmp_path):
    """Five demos gave 93.5 % on average, 0.9 points of spread; a single one must reach 85 %."""
    bundle = tmp_path / "demo"
    said = stillroom("demo", "-o", bundle)
    assert "certified epsilon 2.000 at delta 1e-05 for record/add-or-remove" in said
    assert "verifies: direct, certified" in said
    certificate = json.loads((bundle / "certificate.json").read_text())
    accuracy = certificate["sections"]["evaluation"]["accuracy"]
    print(f"accuracy of this demo: {accuracy:.1%}")
    assert accuracy >= 0.85
    assert certificate["purpose"] == "benchmark"
    assert {p.name for p in bundle.iterdir()} == {
        *("model.safetensors", "model.onnx", "certificate.json"),
        *("recipe.toml", "card.html", "manifest.json"),
    }
    lines = stillroom("predict", bundle, "digits").splitlines()
    assert len(lines) == 1797
    number, label, sure = lines[7].split("\t")
    assert (number, label in "0123456789") == ("7", True)
    assert 0.1 <= float(sure) <= 1
    (tmp_path / "file").write_text("")
    stillroom("demo", "-o", tmp_path / "file" / "demo", code=2)


def test_the_name_of_a_file_gives_the_terminal_no_orders(tmp_path):
    message = stillroom("verify", tmp_path / "a\x1b[2Jb\nverifies: yes", code=2)
    assert "\x1b" not in message
    assert "a\\x1b[2Jb\\nverifies: yes" in message


def test_a_draw_in_progress_is_not_shown_as_lost(ledger):
    opened = Ledger.open(ledger)
    (number,) = (row.seq for row in opened.store.rows("kind = 'block'"))
    opened.begin_draw(number, 0, (VOTES, 3), 1)
    (block,) = json.loads(stillroom("ledger", "show", ledger, "--json"))["blocks"]
    assert {key: block["wishes"][0][key] for key in ("drawn", "lost", "open")} == {
        "drawn": 2,
        "lost": 0,
        "open": 1,
    }
    assert f"block {number}: the last draw is at work" in stillroom("ledger", "show", ledger)
    opened.begin_draw(number, 0, (VOTES, 3), 1)  # whoever draws the next one gave up the one before
    (block,) = json.loads(stillroom("ledger", "show", ledger, "--json"))["blocks"]
    assert (block["wishes"][0]["lost"], block["wishes"][0]["open"]) == (1, 1)


def test_one_forgotten_flag_does_not_stop_a_ledger_of_persons(tmp_path):
    path = tmp_path / "l.sqlite"
    Ledger.create(path, ids=["a"], persons=["p"], unit="person")
    said = stillroom("ledger", "budget", "set", path, "--epsilon", 2, "--reason", "no flag")
    assert "budget for person/add-or-remove: epsilon 2" in said
    wrong = ("ledger", "budget", "set", path, "--epsilon", 2, "--reason", "x", "--for")
    assert "it protects each person" in stillroom(*wrong, "record/add-or-remove", code=2)
    stillroom(*wrong, "person/change")
    unset = ("ledger", "budget", "unset", path, "--reason", "not promised", "--for")
    assert "cannot be taken back" in stillroom(*unset, "person/add-or-remove", code=2)
    assert "no budget for person/change any more" in stillroom(*unset, "person/change")
    shown = json.loads(stillroom("ledger", "budget", "show", path, "--json"))
    assert [line["for"] for line in shown] == ["person/add-or-remove"]


@pytest.mark.slow
def test_release_from_the_command_line(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        "[data]\nsource = 'digits'\ndeclared_size = 1440\ntest_is_public = true\n"
        "[features]\nname = 'pixels'\n[training]\nsteps = 5\n[privacy]\nepsilon = 1.0\n"
    )
    ledger, bundle = tmp_path / "ledger.sqlite", tmp_path / "out"
    assert "data.declared_size" in stillroom("recipe", "explain", recipe)
    planned = json.loads(stillroom("release", recipe, "-o", bundle, "--dry-run", "--json"))
    assert planned["draws"] == {"gaussian-sum": 5}
    assert not ledger.exists()
    assert "no budget is set" in stillroom("release", recipe, "-o", bundle, code=2)
    stillroom("ledger", "budget", "set", ledger, "--epsilon", 1.2, "--reason", "a test")
    stillroom("keys", "make", tmp_path / "release.key")
    made = json.loads(
        stillroom("release", recipe, "-o", bundle, "--key", tmp_path / "release.key", "--json")
    )
    assert made["epsilon"] <= 1.0
    stillroom("verify", bundle, "--key", tmp_path / "release.key.pub")
    stillroom("keys", "make", tmp_path / "other.key")
    stillroom("verify", bundle, "--key", tmp_path / "other.key.pub", code=4)
    blocks = json.loads(stillroom("ledger", "show", ledger, "--json"))["blocks"]
    assert "does not fit" in stillroom("release", recipe, "-o", tmp_path / "again", code=3)
    assert json.loads(stillroom("ledger", "show", ledger, "--json"))["blocks"] == blocks
    recipe.write_text("[dta]\n")
    assert "nearest known one is 'data'" in stillroom("release", recipe, "-o", bundle, code=2)


def test_interrupting_ends_130_and_the_same_command_goes_on(tmp_path):
    # The signal comes from within, so that it always arrives while the fourth sum is computed.
    code = INTERRUPTIBLE + (
        "import sys; from stillroom.private import LinearRecords as L\n"
        "real = L.clipped_sum; seen = []\n"
        "def interrupted(*a):\n"
        "    seen.extend(sample for sample in a[3:] if sample is not None)\n"
        "    if len(seen) == 4: signal.raise_signal(signal.SIGINT)\n"
        "    return real(*a)\n"
        "L.clipped_sum = interrupted\n"
        "from stillroom.cli import run; sys.exit(run(['demo', '-o', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 130, done.stdout + done.stderr
    assert "ledger is true" in done.stderr
    ledger = tmp_path / "demo.run" / "ledger.sqlite"
    stillroom("ledger", "verify", ledger)
    assert "lost answers, charged and not drawn again: 1" in stillroom(
        "demo", "-o", tmp_path / "demo"
    )
    shown = json.loads(stillroom("ledger", "show", ledger, "--json"))
    assert shown["blocks"][0]["wishes"] == [
        {"mechanism": "gaussian-sum", "reserved": 60, "drawn": 60, "lost": 1, "open": 0}
    ]


def test_an_internal_fault_ends_1_and_quotes_no_data():
    code = (
        "import sys, stillroom.planning as p\n"
        "def broken(**numbers): raise RuntimeError('patient 17 has 38.5 degrees')\n"
        "p.plan = broken\n"
        "from stillroom.cli import run; sys.exit(run(['plan', '--sigma', '5', '--queries', '5']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "internal fault (RuntimeError)" in done.stderr
    assert "patient" not in done.stderr
