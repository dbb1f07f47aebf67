"""Small recipes on the built-in digits, for any method and source."""

SOURCES = {
    "trained": "[training]\nsteps = 20\nrate = 1\n",
    "ensemble": "[teachers]\ncount = 20\nshard_cap = 80\nvotes = 150\n",
    "plain": '[plain]\nteacher = "mlp"\nepochs = 10\n',
    "sketch": '[sketch]\nmu = "3/2"\ndirections = 12\ncentres = 1\nlloyd = 1\n',
}
METHODS = {
    "rona": '[rona]\nstudent = "mlp"\nauxiliary = "mlp"\nrounds = 1\nbatch = 32\nself_batch = 32\n',
    "labels": '[labels]\nstudent = "mlp"\n',
}


def recipe_for(method: str, source: str, *, ledger: str = "ledger.sqlite") -> str:
    """The text of a recipe that takes some seconds."""
    mode = "as-published" if source == "plain" else "certified"
    public = "" if method == "direct" else 'public = "2/5"\n'
    return (
        f'method = "{method}"\nsource = "{source}"\nmode = "{mode}"\npurpose = "benchmark"\n'
        f'ledger = "{ledger}"\n'
        f'[data]\nsource = "digits"\ntest = "1/4"\ntest_is_public = true\ndeclared_size = 800\n'
        f'{public}[features]\nname = "pixels"\nfull_scale = 16\n'
        f"{SOURCES[source]}{METHODS.get(method, '')}"
        '[engine]\nkind = "serial"\n[privacy]\nepsilon = 8\n'
    )
