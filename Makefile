# Every target sets itself up: a machine with python3, make and pip is enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
CLUSTER_READY := .venv/ready-cluster
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE

.PHONY: help demo test test-slow lint bench bench-gate bench-direct-speed data docs clean

help:
	@echo "make demo | test | test-slow | lint | bench | bench-gate | bench-direct-speed | data | docs | clean"

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/stillroom demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 -m 'not slow'

# Ray and dask are large, and only a cluster needs them.
$(CLUSTER_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,cluster,dev]'
	@touch $@

test-slow: $(CLUSTER_READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-gate

bench-gate: $(READY)
	$(BIN)/python benchmarks/gate.py

bench-direct-speed: $(READY)
	$(BIN)/python benchmarks/direct_speed.py

data: $(READY)
	$(BIN)/stillroom data import mnist
	$(BIN)/stillroom data import fashion-mnist
	$(BIN)/stillroom data import cifar-10

docs: $(READY)
	$(BIN)/python docs/build.py

clean:
	rm -rf .venv build *.egg-info src/*.egg-info
