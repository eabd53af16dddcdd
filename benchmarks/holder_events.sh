#!/bin/sh
# Builds and runs holder_events.c beside the engine's own sources, optimised as the extension is.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
core=$(ls native/base/*.c native/meter/*.c native/lines/*.c native/holders/*.c native/frames/*.c native/saved/*.c \
    native/events/*_elf.c native/events/elf_got.c)
# a shared library, as the extension is: thread-local data is reached in the same way
cc -std=gnu11 -O3 -flto -fPIC -shared -Dmain=holder_events -Inative $core benchmarks/holder_events.c \
    -o "$out/libholder_events.so" -ldl -lpthread
echo 'int holder_events(void); int main(void) { return holder_events(); }' >"$out/main.c"
cc "$out/main.c" -o "$out/main" -L"$out" -lholder_events -Wl,-rpath,"$out"
"$out/main"
