"""The card's tables and the small pieces every section is made of; all text is escaped here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from stillroom.gate.rounding import shown
from stillroom.release.files import number

UNITS = {
    "record": "one record",
    "person": "one person, with all records of that person",
    "entity": "one participant, with all of that participant's records",
}
RELATIONS = {
    "add-or-remove": "was used or not",
    "change": "had this content or another",
}


ADAPTIVE = (
    "<p>What was spent is added up as if all releases had been planned beforehand. If one was "
    "planned in view of the answers of another, no theorem gives that figure; what holds then is "
    "the budget, which no release was allowed to break.</p>"
)


def text(value: object) -> str:
    """Any value as text that cannot become markup."""
    return escape(str(value), quote=True)


def epsilon(figure: Any) -> str:
    """A figure of the certificate for people, rounded up."""
    return "-" if figure is None else shown(number(figure))


def section(title: str, *body: str, kind: str = "") -> str:
    """A part of the page with its heading."""
    return f'<section class="{kind}">\n<h2>{title}</h2>\n' + "\n".join(body) + "\n</section>"


def listed(items: Iterable[str]) -> str:
    """A list of items that are already HTML."""
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are already HTML."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def confusion(counts: Sequence[Sequence[int]], classes: Sequence[str]) -> str:
    """Counts of answers, shaded by their share of the row; noisy ones may be negative."""
    names = [text(name) for name in classes]
    top = "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for place, (name, row) in enumerate(zip(names, counts, strict=False)):
        whole = max(1, sum(max(0, count) for count in row))
        cells = []
        for column, count in enumerate(row):
            colour = "46,125,80" if column == place else "190,70,50"
            shade = max(0, count) / whole
            cells.append(f'<td style="background:rgba({colour},{0.6 * shade:.2f})">{count}</td>')
        rows.append(f"<tr><th>{name}</th>{''.join(cells)}</tr>")
    return (
        '<div class="wide"><table class="confusion"><caption>One row per true class, one column '
        f"per answer of the model</caption><thead><tr><th></th>{top}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def model_table(certificate: Mapping[str, Any]) -> str:
    """What was released."""
    model = certificate["model"]
    row = (
        text(model["about"]),
        f"{len(model['classes'])}",
        " x ".join(text(size) for size in model["shape"]),
        f"{model['parameters']:,}",
        file_size(model["size"]),
    )
    head = ("what it is", "classes", "one record", "parameters", "size of model.onnx")
    return section("The model", table(head, [row]))


def file_size(count: int) -> str:
    """A number of bytes for people.

    >>> file_size(950), file_size(40_709), file_size(12_485_514)
    ('950 bytes', '40.7 kB', '12.5 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"


def share(accuracy: float | None, digits: int = 2) -> str:
    """An accuracy for people, or a word where there is none.

    >>> share(0.9312), share(None)
    ('93.12%', 'not told')
    """
    return "not told" if accuracy is None else f"{accuracy:.{digits}%}"


def sample_sheet(sheet: bytes, count: int) -> str:
    """Pictures drawn from a sanitised sketch, and a plain word that they are nobody's records."""
    picture = b64encode(sheet).decode()
    many = f"{count} picture{'s' if count != 1 else ''}"
    return section(
        "Drawn from the private sketch: no real records",
        f'<img class="sheet" alt="{many} drawn from the private sketch" '
        f'src="data:image/png;base64,{picture}">',
        "<p>These pictures were made up from noisy class statistics that came through the gate; "
        "their price is part of the epsilon above. None of them is anyone's record.</p>",
    )


def figures(certificate: Mapping[str, Any]) -> str:
    """Every epsilon of this release."""
    rows = [
        (
            text(UNITS[line["unit"]]),
            text(RELATIONS[line["relation"]]),
            f"{line['delta']:g}",
            f"<strong>{epsilon(line['epsilon'])}</strong>",
            epsilon(line["PLD"]),
            epsilon(line["RDP"]),
        )
        for line in certificate["guarantees"]
    ]
    head = ("whom", "what stays hidden", "delta", "epsilon", "by PLD", "by RDP")
    shown_as = table(head, rows) if rows else "<p>Nothing is proven for anyone.</p>"
    return section("Every figure of this release", shown_as)


def totals(certificate: Mapping[str, Any]) -> str:
    """What the data set has paid so far, with the budgets and their reasons (L6, L9)."""
    data = certificate["data_set"]
    rows = [
        (
            text(total["for"]),
            f"{total['delta']:g}",
            epsilon(total["spent"]),
            f"{total['budget']:g}",
            # The filter that lets blocks in adds more loosely than the price of a single block.
            f"{min(1.0, number(total['share'])):.0%}",
            "<br>".join(
                f"{entry['epsilon']:g} at {entry['delta']:g}: {text(entry['reason'])}"
                for entry in data["budgets"]
                if entry["for"] == total["for"] and entry["epsilon"] is not None
            ),
        )
        for total in data["totals"]
    ]
    head = ("whom", "delta", "spent so far", "budget", "share used", "budgets and their reasons")
    return section(
        "Everything ever told about these data",
        f"<p>This release and all before it on the same data, {data['blocks']} "
        f"block{'s' if data['blocks'] != 1 else ''} in all, when the card was made.</p>",
        table(head, rows),
        *(
            f"<p>A budget for {text(entry['for'])} was taken back: {text(entry['reason'])}</p>"
            for entry in data["budgets"]
            if entry["epsilon"] is None
        ),
        "" if data["blocks"] == 1 else ADAPTIVE,
    )


def assumptions(certificate: Mapping[str, Any]) -> str:
    """What was checked and what was assumed."""
    rows = [
        (
            text(name.replace("_", " ")),
            text(how.partition(":")[0]),
            text(how.partition(":")[2]),
        )
        for name, how in certificate["assumptions"].items()
    ]
    shown_as = table(("assumption", "standing", "how"), rows) if rows else "<p>None was named.</p>"
    return section("What the figures rest on", shown_as)
