"""Small recipes on the built-in digits, for any method and source."""

SOURCES = {
    "trained": "[training]\nsteps = 20\nrate = 1\n",
    "ensemble": "[teachers]\ncount = {count}\nshard_cap = 80\nvotes = {votes}\n",
    "plain": '[plain]\nteacher = "mlp"\nepochs = 10\n',
    "sketch": '[sketch]\nmu = "3/2"\ndirections = 12\ncentres = 1\nlloyd = 1\nwhitened = 1\n',
}
MANY = {"count": 20, "votes": 150}
METHODS = {
    "rona": '[rona]\nstudent = "mlp"\nauxiliary = "mlp"\nrounds = 1\nbatch = 32\nself_batch = 32\n',
    "dpdfd": '[dpdfd]\nstudent = "mlp"\n',
    "labels": '[labels]\nstudent = "mlp"\n',
}


LESSONS = {
    "trained": "rounds = 3\nstructured = 600\nepochs = 6\nbatch = 50\nfrequencies = 30\n",
    "ensemble": "rounds = 1\nstructured = 0\nmixed = 0\nsamples = 500\nepochs = 30\nbatch = 32\n",
    "sketch": "rounds = 3\nstructured = 0\nmixed = 0\nsamples = 600\nepochs = 8\nbatch = 50\n",
    "plain": "",
}
"""What a student of method dpdfd is shown, by source."""
COLLECTIONS = {
    "ensemble": "[collection]\nmodels = 150\nshard_cap = 20\nlearning_rate = 2.0\n"
    "[pg]\nrounds = 8\nclip = 2.0\n",
    "plain": '[collection]\nmodel = "linear"\nparameters = 650\nmodels = 8\nshard_cap = 800\n'
    "epochs = 8\nbatch = 32\nlearning_rate = 0.02\n[published]\nepsilon = 10\n",
}
"""What method pg trains, by source."""
ENTITIES = """
[entities]
count = 20
largest = 80
[votes]
queries = 150
[student]
model = "mlp"
rounds = 1
epochs = 12
batch = 32
"""
"""Who votes, by method votes."""
PUBLISHED = """
[published]
iterations = 20
sigma = "1/100"
[generator]
model = "mlp"
"""


def recipe_for(method: str, source: str, *, ledger: str = "ledger.sqlite") -> str:
    """The text of a recipe that takes some seconds."""
    mode = "as-published" if source == "plain" else "certified"
    public = "" if method in ("direct", "dpdfd") else 'public = "2/5"\n'
    own, asked = METHODS.get(method, ""), SOURCES[source]
    if source == "ensemble":
        # Votes on pictures that nobody took are less sure, so fewer are bought.
        asked = asked.format(**({"count": 60, "votes": 40} if method == "dpdfd" else MANY))
    if method == "pg":
        asked = COLLECTIONS[source]
    if method == "votes":
        asked = ENTITIES
    if method == "dpdfd":
        own += LESSONS[source] + (PUBLISHED if source == "plain" else "")
        own += SOURCES["sketch"] if source == "ensemble" else ""
    return (
        f'method = "{method}"\nsource = "{source}"\nmode = "{mode}"\npurpose = "benchmark"\n'
        f'ledger = "{ledger}"\n'
        f'[data]\nsource = "digits"\ntest = "1/4"\ntest_is_public = true\ndeclared_size = 800\n'
        f'{public}[features]\nname = "pixels"\nfull_scale = 16\n'
        f"{asked}{own}"
        '[engine]\nkind = "serial"\n[privacy]\nepsilon = 8\n'
    )
