#!/bin/sh
# For a machine with a CUDA GPU: runs the tests marked `gpu` on it, then compares the demo's figures with the simulation's.
# Usage: [PYTHON=python3] tests/gpu/check.sh        (PyTorch with CUDA, pandas, jinja2, pytest, scikit-build-core there)
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available(), "PyTorch finds no CUDA GPU here"'
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
"$python" -m pip install --quiet --no-build-isolation --no-deps --target "$target" .
export PYTHONPATH="$target${PYTHONPATH:+:$PYTHONPATH}"
failed=0
(cd tests && MEMLAB_TEST_GPU=real "$python" -m pytest -q -p no:cacheprovider -m gpu .) || failed=1
"$python" tests/gpu/compare_demo.py || failed=1
exit $failed
