#!/bin/sh
# Builds the sdist and a manylinux wheel in FOLDER, checks what is in them, and tries each in a clean environment.
# Usage: tests/wheel/run.sh PYTHON FOLDER
set -eu
python=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tools="$folder/tools/bin"

if [ ! -e "$folder/tools/.ready" ]; then
    "$python" -m venv "$folder/tools"
    "$tools/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    touch "$folder/tools/.ready"
fi

rm -rf "$folder/built" "$folder/dist" "$folder/clean"
"$tools/python" -m build --no-isolation --outdir "$folder/built" "$here/../.." >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
PATH="$tools:$PATH" "$tools/auditwheel" repair --wheel-dir "$folder/dist" "$folder"/built/*.whl
mv "$folder"/built/*.tar.gz "$folder/dist"
"$tools/twine" check --strict "$folder"/dist/*
"$tools/python" "$here/contents.py" "$folder"/dist/*.tar.gz "$folder"/dist/*.whl

for package in "$folder"/dist/*; do
    echo "Trying $(basename "$package") in a clean environment"
    rm -rf "$folder/clean"
    "$python" -m venv "$folder/clean"
    "$folder/clean/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
    (cd "$folder/clean" && bin/python -I "$here/smoke.py")
done
rm -rf "$folder/clean"
ls -1 "$folder"/dist/*
