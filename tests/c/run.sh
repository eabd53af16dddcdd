#!/bin/sh
# Builds the C unit tests in a folder and runs them. Usage: run.sh FOLDER [CMAKE ARGUMENT ...]
set -eu
folder=$1
shift
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPML_PYTHON=OFF -DPML_C_TESTS=ON \
    -DPML_WERROR=ON "$@" >/dev/null
cmake --build "$folder"
ctest --test-dir "$folder" --output-on-failure -j 2
