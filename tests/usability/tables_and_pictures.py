"""Mistakes in data: tables that are none, labels, persons, pictures."""

from __future__ import annotations

import subprocess

import numpy as np
from PIL import Image

from usability.mistakes import mistake
from usability.world import SCANS, VISITS

CHECK = "recipe check recipe.toml"
RELEASE = "release recipe.toml -o model"


@mistake(2, "called 'visit.csv'", "visit.csv", "nothing to look at", "did you mean 'visits.csv'")
def a_misspelt_file(world):
    world.visits()
    world.recipe(VISITS, source='"visit.csv"')
    told = yield RELEASE
    world.mend("visit.csv", told.quoted("what to do")[0])
    yield CHECK


@mistake(2, "called 'digit'", "digit", "nothing to look at", "did you mean 'digits'")
def a_misspelt_data_set(world):
    told = yield "data show digit"
    yield f"data show {told.quoted('what to do')[0]}"


@mistake(2, "classes are not known", "visits.csv", "give records away", "list their names")
def classes_that_are_not_declared(world):
    world.visits()
    world.recipe(VISITS, classes="")
    yield RELEASE
    world.mend("[data]", '[data]\nclasses = ["well", "ill"]')
    yield CHECK


@mistake(2, "classes are not known", "visits.csv", "give records away", "--classes")
def classes_that_are_not_said(world):
    world.visits()
    yield "data show visits.csv"
    yield "data show visits.csv --classes well,ill"


@mistake(2, "a label is outside 0 to 8", "record", "classes decide", "declare more classes")
def too_few_classes(world):
    world.arrays()
    world.recipe(source='"scans.npz"', declared_size="160\nclasses = 9")
    yield RELEASE
    world.mend("classes = 9", "classes = 10")
    yield CHECK


@mistake(2, "not among the given classes", "line 4", "classes decide", "as the label column")
def a_misspelt_class(world):
    world.visits(line_3="25,2,Ill")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("Ill", "ill", "visits.csv")
    yield CHECK


@mistake(
    2, "a feature is not a number", "line 3, column 1 ('age')", "trained on numbers", "turn text"
)
def a_word_among_numbers(world):
    world.visits(line_2="old,2,ill")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("old,", "90,", "visits.csv")
    yield CHECK


@mistake(2, "a feature is missing", "line 3, column 2 ('dose')", "numbers", "fill the cell in")
def an_empty_cell(world):
    world.visits(line_2="50,,ill")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("50,,ill", "50,0,ill", "visits.csv")
    yield CHECK


@mistake(2, "not a finite number", "record 1", "clipping cannot bound", "remove or repair")
def not_a_number_in_a_table(world):
    world.visits(line_2="nan,2,ill")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("nan,2,ill\n", "", "visits.csv")
    yield CHECK


@mistake(2, "not a finite number", "record 7", "clipping cannot bound", "remove or repair")
def infinity_in_an_array(world):
    from stillroom.data import digits

    x = digits().x[:200].astype(float)
    spoilt = x.copy()
    spoilt[7, 3, 3] = np.inf
    world.arrays(x=spoilt)
    yield "data show scans.npz --classes 10"
    world.arrays(x=x)
    yield "data show scans.npz --classes 10"


@mistake(2, "has no arrays x and y", "scans.npz", "under these names", "called x and y")
def arrays_of_other_names(world):
    np.savez(world.folder / "scans.npz", images=np.eye(8), labels=np.arange(8))
    yield "data show scans.npz --classes 8"
    np.savez(world.folder / "scans.npz", x=np.eye(8), y=np.arange(8))
    yield "data show scans.npz --classes 8"


@mistake(2, "exactly one column called 'label'", "line 1", "by their names", "column names above")
def a_table_without_a_header(world):
    world.visits(header="50,1,ill")
    world.recipe(VISITS)
    yield RELEASE
    world.write("visits.csv", f"age,dose,label\n{world.read('visits.csv')}")
    yield CHECK


@mistake(2, "exactly one column called 'label'", "line 1", "by their names", "capital letters")
def a_label_in_capitals(world):
    world.visits(header="age,dose,Label")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("Label", "label", "visits.csv")
    yield CHECK


@mistake(2, "column called 'patient'", "line 1", "by their names", "which one holds")
def a_person_column_that_is_not_there(world):
    world.people()
    world.recipe(VISITS.replace("[data]", '[data]\nunit = "person"\nperson_column = "patient"'))
    yield RELEASE
    world.mend("patient", "person")
    yield CHECK


@mistake(2, "separated by semicolons", "line 1", "one cell", "commas between the cells")
def a_table_with_semicolons(world):
    world.visits()
    right = world.read("visits.csv")
    world.write("visits.csv", right.replace(",", ";"))
    world.recipe(VISITS)
    yield RELEASE
    world.write("visits.csv", right)
    yield CHECK


@mistake(2, "separated by tabs", "line 1", "one cell", "commas between the cells")
def a_table_with_tabs(world):
    world.visits()
    right = world.read("visits.csv")
    world.write("visits.csv", right.replace(",", "\t"))
    world.recipe(VISITS)
    yield RELEASE
    world.write("visits.csv", right)
    yield CHECK


def turned(world, told, old, new):
    """What the remedy's iconv does."""
    command = told.remedy.split("`")[1].replace("OLD.csv", old).replace("NEW.csv", new)
    subprocess.run(command, shell=True, check=True, cwd=world.folder)


@mistake(2, "not in UTF-8, but in Latin-1", "visits.csv", "for two persons", "iconv -f latin1")
def a_table_in_latin_1(world):
    world.write("visits.csv", "größe,label\n180,ill\n170,well\n" * 1, encoding="latin-1")
    told = yield "data show visits.csv --classes well,ill"
    turned(world, told, "visits.csv", "new.csv")
    yield "data show new.csv --classes well,ill"


@mistake(2, "in UTF-16", "visits.csv", "for two persons", "iconv -f utf-16")
def a_table_in_utf_16(world):
    world.write("visits.csv", "age,label\n80,ill\n70,well\n", encoding="utf-16")
    told = yield "data show visits.csv --classes well,ill"
    turned(world, told, "visits.csv", "new.csv")
    yield "data show new.csv --classes well,ill"


@mistake(2, "a workbook of Excel", "visits.csv", "what a record is", "CSV UTF-8")
def a_workbook_called_csv(world):
    import zipfile

    with zipfile.ZipFile(world.folder / "visits.csv", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
    world.recipe(VISITS)
    yield RELEASE
    world.visits()  # saved as the remedy says
    yield CHECK


@mistake(2, "not as many cells", "line 4", "another column", "text with commas needs quotes")
def a_line_with_too_many_cells(world):
    world.visits(line_3="1,5,2,ill")
    world.recipe(VISITS)
    yield RELEASE
    world.mend("1,5,2,ill", '"1.5",2,ill', "visits.csv")
    yield CHECK


@mistake(2, "an id occurs twice", "record 1", "protected as one", "give them as persons")
def persons_given_as_ids(world):
    world.people()
    world.recipe(VISITS.replace("[data]", '[data]\nid_column = "person"'))
    yield RELEASE
    world.mend("id_column", "person_column")
    yield CHECK


@mistake(2, "a person is in two parts", "sensitive and test part", "open or measured", "one part")
def a_person_in_train_and_test(world):
    from stillroom.data import digits

    data, whose = digits(), np.arange(100)
    parts = {"x_train": data.x[:100], "y_train": data.y[:100], "persons_train": whose}
    tested = {"x_test": data.x[100:200], "y_test": data.y[100:200]}
    np.savez(world.folder / "scans.npz", **parts, **tested, persons_test=whose + 99)
    told = "classes = 10\nsplit = 'as-given'"
    world.recipe(source='"scans.npz"', declared_size=f"100\n{told}")
    yield RELEASE
    np.savez(world.folder / "scans.npz", **parts, **tested, persons_test=whose + 100)
    yield CHECK


@mistake(2, "a class folder holds no pictures", "scans/gone", "not finished", "remove the folder")
def an_empty_class_folder(world):
    world.scans()
    (world.folder / "scans" / "gone").mkdir()
    world.recipe(SCANS, classes="")
    yield RELEASE
    (world.folder / "scans" / "gone").rmdir()
    yield CHECK


@mistake(2, "not among the given classes", "scans/odd", "left out silently", "leave the classes")
def a_class_folder_that_is_not_declared(world):
    world.scans()
    Image.new("L", (8, 8)).save(world.folder / "scans" / "ill" / "1.png")
    (world.folder / "scans" / "odd").mkdir()
    Image.new("L", (8, 8)).save(world.folder / "scans" / "odd" / "1.png")
    world.recipe(SCANS)
    yield RELEASE
    world.mend('classes = ["well", "ill"]\n', "")
    yield CHECK


@mistake(2, "no sub-folders of pictures", "scans", "class", "one sub-folder per class")
def pictures_without_class_folders(world):
    (world.folder / "scans").mkdir()
    Image.new("L", (8, 8)).save(world.folder / "scans" / "1.png")
    world.recipe(SCANS)
    yield RELEASE
    world.scans()
    (world.folder / "scans" / "1.png").unlink()
    yield CHECK


@mistake(2, "another size or mode", "scans", "one shape", "data.size, such as 64")
def pictures_of_several_sizes(world):
    world.scans(size=lambda n: (8 + n, 8), mode=lambda n: "RGB" if n % 3 else "L")
    world.recipe(SCANS)
    yield RELEASE
    world.mend("[data]", '[data]\nsize = 64\nmode = "grey"')
    yield CHECK


@mistake(2, "no readable picture", "Thumbs.db", "is a record", "repair or remove it")
def a_stray_file_among_pictures(world):
    world.scans()
    world.write("scans/ill/Thumbs.db", "no picture")
    world.recipe(SCANS)
    yield RELEASE
    (world.folder / "scans" / "ill" / "Thumbs.db").unlink()
    yield CHECK


@mistake(2, "needs a name", "--name", "found by its name", "--name NAME")
def an_import_without_a_name(world):
    world.visits()
    told = yield "data import visits.csv --classes well,ill"
    named = told.command(NAME="visits").replace("--classes 10", "--classes well,ill")
    yield named
    yield "data show visits"


@mistake(2, "cannot be called 'My Visits'", "name", "become folders", "small letters")
def an_import_with_a_name_of_capitals(world):
    world.visits()
    yield "data import visits.csv --classes well,ill --name 'My Visits'"
    yield "data import visits.csv --classes well,ill --name my-visits"


@mistake(2, "is there already", "data/visits", "see other records", "--replace")
def an_import_under_a_name_that_is_taken(world):
    from stillroom.cli import run

    world.visits()
    again = "data import visits.csv --classes well,ill --name visits"
    run(again.split())
    yield again
    yield f"{again} --replace"


@mistake(2, "file of labels", "images", "labels", "--labels")
def pictures_of_mnist_without_their_labels(world):
    head = bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2])
    (world.folder / "images").write_bytes(head + bytes(range(12)))
    (world.folder / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 0]))
    yield "data show images --classes 2"
    yield "data show images --labels labels --classes 2"
