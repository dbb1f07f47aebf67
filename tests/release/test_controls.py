"""Controls and claims: what may stand beside a release, and what the card says of them."""

from __future__ import annotations

import dataclasses
import math

import pytest

from release.making import certificate_of, forge, make
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import NoisyCounts, Unprotected
from stillroom.randomness import uniforms
from stillroom.release import Claim, Control, Evaluation, verify_bundle, write_bundle
from stillroom.release.sections.controls import gain

NOTHING = "The sensitive data added nothing that can be measured here"
SOMETHING = "The sensitive data added something"
TESTED = ((4900, 100, 0), (100, 4900, 0), (0, 0, 0))
CEILING = Control("ceiling, not private", 0.995, "the teacher without noise", private=True)


def base(accuracy, name="Base"):
    return Control(name, accuracy, "public labels <only>", private=False)


def publicly(accuracy):
    return Control("public teacher", accuracy, "public data", private=False, public_only=True)


def card(folder, controls, **changes):
    evaluation = Evaluation(TESTED, protected=False)
    made = make(folder, controls=controls, evaluation=evaluation, **changes)
    write_bundle(made, folder / "bundle")
    assert verify_bundle(folder / "bundle")["verifies"]
    return (folder / "bundle" / "card.html").read_text()


def test_a_gain_is_told_with_its_interval(tmp_path):
    teacher = Control("teacher & co", 0.985, "through the gate", private=False)
    page = card(tmp_path, (base(0.97), publicly(0.96), teacher))
    assert SOMETHING in page
    assert NOTHING not in page
    low, high = gain(0.98, 0.97, 10_000)
    assert f"<strong>+1.00 points</strong> (95 % interval: {100 * low:+.2f} to" in page
    assert f"{100 * high:+.2f})" in page
    assert "10,000 test records" in page
    assert "teacher &amp; co" in page
    assert "public labels &lt;only&gt;" in page
    assert "<only>" not in page


@pytest.mark.parametrize("accuracy", [0.979, 0.98, 0.982], ids=str)
def test_no_gain_is_told_plainly(tmp_path, accuracy):
    page = card(tmp_path, (base(accuracy),))
    assert f"{NOTHING}: a model trained on public data alone does as well." in page
    assert SOMETHING not in page


def test_a_worse_model_is_told_plainly(tmp_path):
    page = card(tmp_path, (base(0.99),))
    assert f"{NOTHING}: a model trained on public data alone does better." in page


def test_the_best_public_model_decides(tmp_path):
    """Above Base, and yet a larger model needed no sensitive data to do as well."""
    page = card(tmp_path, (base(0.9), publicly(0.9795)))
    assert NOTHING in page
    assert "over Base: <strong>+8.00 points" in page
    assert "over public teacher: <strong>+0.05 points" in page


def test_a_teacher_that_came_through_the_gate_does_not_decide(tmp_path):
    page = card(tmp_path, (base(0.9), Control("teacher", 0.99, "DP-SGD", private=False)))
    assert SOMETHING in page


def test_controls_are_listed_as_told_exactly(tmp_path):
    page = card(tmp_path, (base(0.97), CEILING), purpose="benchmark")
    certificate = certificate_of(tmp_path / "bundle")
    assert certificate["sections"]["controls"]["models"] == [
        {
            "name": "Base",
            "accuracy": 0.97,
            "about": "public labels <only>",
            "private": False,
            "public_only": True,
        },
        {
            "name": "ceiling, not private",
            "accuracy": 0.995,
            "about": "the teacher without noise",
            "private": True,
            "public_only": False,
        },
    ]
    told = " ".join(certificate["unprotected"])
    assert "models it is compared with, exact" in told
    assert "accuracy of ceiling, not private, which saw sensitive records without" in told
    assert "no epsilon on this page covers it" in page


def test_a_ceiling_never_leaves_with_a_release(tmp_path):
    made = make(tmp_path, controls=(base(0.97), CEILING), purpose="release")
    with pytest.raises(BadInput, match="without protection") as caught:
        write_bundle(made, tmp_path / "bundle")
    assert caught.value.where == "controls"
    assert "0.995" not in str(caught.value)
    assert not (tmp_path / "bundle").exists()
    sections = {**made.sections, "controls": (base(0.97),)}
    write_bundle(dataclasses.replace(made, sections=sections), tmp_path / "bundle")
    assert verify_bundle(tmp_path / "bundle")["purpose"] == "release"


NOISY = Evaluation(((400, -3, 0), (13, 400, 0), (0, 6, 400)), protected=True)
ACCURACY = 1200 / 1216
TABLES = NoisyCounts(sigma=6, width=9)


def test_controls_need_an_evaluation(tmp_path):
    made = make(tmp_path, controls=(base(0.97),), evaluation=None)
    with pytest.raises(BadInput, match="need an evaluation"):
        write_bundle(made, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("accuracy", [0.9, 0.99], ids=str)
@pytest.mark.parametrize("purpose", ["release", "benchmark"])
def test_noisy_controls_stand_beside_a_noisy_evaluation(tmp_path, purpose, accuracy):
    """They were paid for, so nothing of them is unprotected; an interval would leave out noise."""
    made = make(
        tmp_path, controls=(base(accuracy),), evaluation=NOISY, purpose=purpose, mechanism=TABLES
    )
    certificate = write_bundle(made, tmp_path / "bundle")
    assert certificate["unprotected"] == []
    models = certificate["sections"]["controls"]["models"]
    assert [control["name"] for control in models] == ["Base"]
    assert verify_bundle(tmp_path / "bundle")["verifies"]
    page = (tmp_path / "bundle" / "card.html").read_text()
    assert "95 % interval" not in page
    assert SOMETHING not in page
    assert ("may be chance" if accuracy < ACCURACY else NOTHING) in page


@pytest.mark.parametrize("steps", [0, 1])
def test_a_noisy_figure_that_nobody_paid_for_is_refused(tmp_path, steps):
    """One table was drawn, or none, and two figures are told."""
    made = make(tmp_path, controls=(base(0.97),), evaluation=NOISY, mechanism=TABLES, steps=steps)
    with pytest.raises(BadInput, match="fewer noisy tables" if steps else "the other way round"):
        write_bundle(made, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_counts_that_are_mostly_noise_still_give_a_card(tmp_path):
    """Noisy counts may add up to anything, nothing and less included."""
    for number, count in enumerate([-1, 0, -400]):
        noisy = Evaluation(((count, 3, 0), (2, count, 0), (0, 0, count)), protected=True)
        folder = tmp_path / str(number)
        write_bundle(
            make(folder, controls=(base(None),), evaluation=noisy, mechanism=TABLES),
            folder / "bundle",
        )
        assert verify_bundle(folder / "bundle")["verifies"]
        page = (folder / "bundle" / "card.html").read_text()
        assert "not told" in page
        assert "points" not in page


@pytest.mark.parametrize("purpose", ["release", "benchmark", "audit"])
def test_a_ceiling_never_stands_beside_a_sensitive_test(tmp_path, purpose):
    """Noise on its counts would hide who is tested, not who it was trained on."""
    made = make(
        tmp_path,
        controls=(base(0.97), CEILING),
        evaluation=NOISY,
        purpose=purpose,
        mechanism=TABLES,
    )
    with pytest.raises(BadInput, match="without protection") as caught:
        write_bundle(made, tmp_path / "bundle")
    assert "0.995" not in str(caught.value)
    assert not (tmp_path / "bundle").exists()


def test_a_forged_ceiling_does_not_verify(tmp_path):
    """The verifier has the same rule: a ceiling written in afterwards is found."""
    made = make(tmp_path, controls=(base(0.97),), evaluation=NOISY, mechanism=TABLES)
    write_bundle(made, tmp_path / "bundle")
    certificate = certificate_of(tmp_path / "bundle")
    certificate["sections"]["controls"]["models"].append(CEILING.to_json())
    forge(tmp_path / "bundle", certificate)
    with pytest.raises(StillroomError):
        verify_bundle(tmp_path / "bundle")


def test_without_controls_there_is_no_section(original):
    assert "controls" not in certificate_of(original)["sections"]
    assert "What the sensitive data added" not in (original / "card.html").read_text()


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, math.nan], ids=str)
def test_an_accuracy_is_a_share(accuracy):
    with pytest.raises(BadInput, match="between 0 and 1"):
        base(accuracy)


def test_base_saw_no_sensitive_record():
    with pytest.raises(BadInput, match="public data alone"):
        Control("Base", 0.9, "", private=True)


def test_the_interval_covers_the_difference():
    """In 4,000 pairs of tests 3,800 should; below 3,650 has a chance under 1e-9."""
    tested, first, second = 200, 0.97, 0.95
    rights = [
        (uniforms(7, name, size=(4000, tested)) < share).mean(axis=1)
        for name, share in (("first", first), ("second", second))
    ]
    intervals = [gain(a, b, tested) for a, b in zip(*rights, strict=True)]
    covered = sum(low <= first - second <= high for low, high in intervals)
    assert covered > 3650
    # A twin of half the width is caught.
    narrow = [((3 * low + high) / 4, (low + 3 * high) / 4) for low, high in intervals]
    assert sum(low <= first - second <= high for low, high in narrow) < 3650


def test_a_claim_is_told_with_its_standing(tmp_path):
    claim = Claim(7.68, "does not hold: <noise> never reaches the student")
    write_bundle(make(tmp_path, method="rona", claim=claim), tmp_path / "bundle")
    certificate = certificate_of(tmp_path / "bundle")
    assert certificate["sections"]["published"] == {"epsilon": 7.68, "status": claim.status}
    page = (tmp_path / "bundle" / "card.html").read_text()
    assert '<p class="figure">7.68</p>' in page
    assert "&lt;noise&gt; never reaches" in page
    assert verify_bundle(tmp_path / "bundle")["verifies"]


@pytest.mark.parametrize(
    ("epsilon", "status"), [(0, "holds"), (-1.0, "holds"), (math.nan, "holds"), (1.0, " ")]
)
def test_a_claim_without_sense_is_refused(epsilon, status):
    with pytest.raises(BadInput):
        Claim(epsilon, status)


def test_an_unknown_mode_is_refused(tmp_path):
    with pytest.raises(BadInput, match="mode"):
        make(tmp_path, mode="trusted")


AS_PUBLISHED = {
    "method": "rona",
    "mode": "as-published",
    "mechanism": Unprotected(width=3, reason="logits of an ordinary teacher"),
    "purpose": "benchmark",
}


def test_a_paper_reproduced_at_infinity_verifies(tmp_path):
    page = card(tmp_path, (base(0.97), CEILING), **AS_PUBLISHED)
    certificate = certificate_of(tmp_path / "bundle")
    assert certificate["status"] == "valid"
    assert certificate["headline"]["epsilon"] == "infinite"
    assert certificate["parties"][0]["guarantees"] == []
    assert certificate["parties"][0]["data_set"]["totals"][0]["spent"] == "infinite"
    again = verify_bundle(tmp_path / "bundle")
    assert again["headline"]["epsilon"] == "infinite"
    assert again["mode"] == "as-published"
    assert '<p class="alarm"><strong>No protection.</strong>' in page
    assert "for comparison only" in page
    assert "epsilon is infinite" in page
    assert "Void" not in page
    assert "what came through the gate" not in page
    assert "at delta 1e-05: nothing is proven" in page
    assert "<li>the records the model was trained on</li>" in page
    assert "Nothing is proven for anyone." in page


def test_a_paper_reproduced_with_a_price_raises_no_alarm(tmp_path):
    page = card(tmp_path, (base(0.97),), mode="as-published", method="rona")
    assert 'class="alarm"' not in page
    assert "not the published one" in page


def test_certified_mode_says_nothing_of_papers(original):
    page = (original / "card.html").read_text()
    assert 'class="alarm"' not in page
    assert "for comparison" not in page
