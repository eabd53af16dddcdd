#!/bin/sh
# Rules for the C files that no compiler checks.
set -eu
failed=0
complain() { echo "$1"; failed=1; }
for file in $(find native tests/c -name '*.[ch]'); do
    head -1 "$file" | grep -q '^/\*' || complain "$file: begins without a comment that says what it is for"
done
grep -nE 'Py_BUILD_CORE|"internal/' -r native && complain "internal headers of CPython are not to be used"
grep -nE '\b(f?printf|puts|exit|abort) *\(' -r native --include='*.c' --include='*.h' &&
    complain "library code neither prints nor exits"
grep -nE 'PY_VERSION_HEX' -r native --include='*.c' && complain "version tests belong in compat.h"
exit $failed
