# What a developer can do. Everything sets itself up in $(VENV), is safe to repeat, and is quick the second time.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.10 python3,$(if $(shell $p -c 'import venv' 2>/dev/null && echo yes),$p)))
VENV ?= .venv
# The CUDA build of PyTorch serves both: CPU tensors, and the simulated GPU. Empty: no PyTorch.
TORCH ?= torch==2.14.1
PYTEST_ARGS ?=
BUILD := build/c

py := $(VENV)/bin/python
sources := $(shell find native pytorch_memlab_c magics -name '*.[chp]*' -not -name '*.pyc' -not -path '*/__pycache__*') CMakeLists.txt native/CMakeLists.txt pyproject.toml

.PHONY: help demo notebook docs test test-c asan valgrind tsan wheel bench lint install clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: install ## profile a real training step, on CPU tensors and on the simulated GPU
	$(py) examples/train_transformer.py cpu
	$(py) examples/train_transformer.py simulated

notebook: install ## run demo.ipynb again and keep its outputs
	$(py) tests/support/run_notebook.py demo.ipynb

docs: install ## build the documentation site in build/docs; a warning is an error
	$(py) -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	$(py) -m sphinx -W -q -b html docs build/docs
	@echo "build/docs/index.html"

test: install ## run the tests
	$(py) -m pytest -n 2 --dist worksteal $(PYTEST_ARGS) tests

install: $(VENV)/.installed ## set up the environment and build the package in it

$(VENV)/.environment: tests/requirements.txt tests/requirements-torch.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.10 or newer with venv was found; set PYTHON=..."; exit 1; }
	@echo "Setting up $(VENV): $(or $(TORCH),no PyTorch) and the test tools. The CUDA build takes minutes and 6 GB."
	$(PYTHON) -m venv $(VENV)
	$(py) -m pip install --quiet --disable-pip-version-check $(TORCH) -r tests/requirements.txt $(if $(TORCH),-r tests/requirements-torch.txt)
	touch $@

$(VENV)/.installed: $(VENV)/.environment $(sources)
	$(py) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

test-c: install ## C unit tests
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh tests/c/run.sh $(BUILD)/plain

asan: install ## C unit tests with AddressSanitizer and UBSan
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh tests/c/run.sh $(BUILD)/asan -DPML_SANITIZE=ON

tsan: install ## C unit tests with ThreadSanitizer
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/c/tsan.supp" PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh tests/c/run.sh $(BUILD)/tsan -DCMAKE_C_FLAGS=-fsanitize=thread

valgrind: install ## C unit tests under valgrind
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh tests/c/run.sh $(BUILD)/valgrind \
	    "-DPML_C_TEST_WRAPPER=valgrind;-q;--error-exitcode=1;--leak-check=full"

wheel: ## build sdist and manylinux wheel into build/wheel/dist, and try each in a clean environment
	sh tests/wheel/run.sh "$(PYTHON)" build/wheel

bench: install ## what a line, a measured workload and a memory report cost, beside pytorch_memlab and torchscan
	$(py) -m pip install --quiet --disable-pip-version-check --no-deps pytorch_memlab==0.3.2 calmsize torchscan==0.2.0 ptmem==0.1.2
	$(py) benchmarks/line_overhead.py
	$(py) benchmarks/workload_overhead.py
	$(py) benchmarks/reporter.py
	$(py) benchmarks/snapshot.py --sizes 100

lint: install ## ruff, mypy, clang-format, and the rules for C files
	$(py) -m ruff check .
	$(py) -m ruff format --check .
	$(py) -m mypy pytorch_memlab_c magics
	$(py) -m mypy --strict --follow-imports=silent tests/typing/public_api.py
	$(VENV)/bin/clang-format --dry-run -Werror $(shell find native tests/c benchmarks -name '*.[ch]')
	sh tests/c/lint.sh

clean: ## remove the environment and all builds
	rm -rf $(VENV) build
