#!/usr/bin/env bash
# Tests the C library as its users get it. Installs the library with cargo-c, and checks the installed files.
# Then builds programs in C and C++ with pkg-config and with CMake, against the shared and the static library.
# Runs these programs plainly, under AddressSanitizer and under valgrind. Then builds and runs programs against
# the static library for musl.
#
#   cargo xtask ci night capi               all parts
#   cargo xtask ci night capi -- header        only makes pageset.h again
#   cargo xtask ci night capi -- musl          only the programs with musl
#
# Needs gcc, g++, cmake, pkg-config, valgrind, jemalloc, mimalloc, and for musl musl-gcc and Rust's target
# x86_64-unknown-linux-musl. Installs them with apt-get and rustup if it has the permission. Builds cargo-c if it is missing, which takes 15 minutes on one core. With all of these, the
# script takes 2 minutes from an empty target directory.
set -euo pipefail
cd "$(dirname "$0")/.."
source "ci/parts.sh"

cargo_c=0.10.24
capi=pool/capi
tests=(misuse uses threads forked handler)
tools=${CARGO_TARGET_DIR:-target}/tools
export PATH=$PATH:$tools/bin
work=$(mktemp -d)
trap 'status=$?; rm -rf "$work"; if ((status)); then echo "FAILED in: $part" >&2; fi' EXIT
# The library's directory on a user's machine, and the directory that stands for it here.
prefix=/opt/pageset
root=$work/root
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig
export LD_LIBRARY_PATH=$root$prefix/lib

setup() {
    local missing=() tool
    for tool in gcc g++ cmake pkg-config valgrind; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    [[ -e /usr/include/jemalloc/jemalloc.h ]] || missing+=(libjemalloc-dev)
    [[ -e /usr/include/mimalloc.h ]] || missing+=(libmimalloc-dev)
    if ((${#missing[@]})); then
        apt-get install -y "${missing[@]}"
    fi
    if [[ $(cargo cinstall --version 2>/dev/null) != *"$cargo_c"* ]]; then
        cargo install cargo-c --version "$cargo_c" --locked --root "$tools"
    fi
}

install_library() {
    cargo cinstall --package pageset-capi --profile dist --destdir "$root" --prefix "$prefix" --libdir lib
}

# Checks what a user finds: names, versions and symbols.
look() {
    local version library=$root$prefix/lib
    version=$(cargo metadata --format-version 1 --no-deps --offline |
        sed 's/.*"name":"pageset-capi","version":"\([^"]*\)".*/\1/')
    cmp "$root$prefix/include/pageset.h" $capi/include/pageset.h ||
        { echo "$capi/include/pageset.h is old: cargo xtask ci night capi -- header" >&2; return 1; }
    readelf -d "$library/libpageset.so" | grep -F "Library soname: [libpageset.so.${version%.*}]"
    [[ $(readlink -f "$library/libpageset.so") == "$library/libpageset.so.$version" ]]
    # Threads may run code of the library when a program closes it.
    readelf -d "$library/libpageset.so" | grep -w NODELETE
    [[ -f $library/libpageset.a ]]
    [[ $(pkg-config --modversion pageset) == "$version" ]]
    grep -F "PACKAGE_VERSION \"$version\"" "$root$prefix/share/cmake/pageset/pagesetConfigVersion.cmake"
    # The shared library exports the functions of the header, and no others.
    nm -D --defined-only "$library/libpageset.so" | sed 's/.* //; s/@.*//' | sort >"$work/symbols"
    grep -o '\bpageset_[a-z_]*(' $capi/include/pageset.h | tr -d '(' | sort -u >"$work/functions"
    diff "$work/functions" "$work/symbols"
}

# Compiles a program: NAME SOURCE COMPILER FLAGS...
program() {
    local name=$1 source=$2 compiler=$3
    shift 3
    # shellcheck disable=SC2046,SC2086
    "$compiler" -pedantic -Wall -Wextra -Werror -O1 -g "$@" $(pkg-config --cflags pageset) "$source" -o "$work/$name" \
        $(libraries) -pthread ${more:-}
}

libraries() {
    if [[ $link == static ]]; then
        # Link everything that the static library needs, and the static library by its file name.
        pkg-config --static --libs pageset | sed "s:-lpageset:$root$prefix/lib/libpageset.a:"
    else
        pkg-config --libs pageset
    fi
}

# Builds and runs the examples and the tests. The arguments say which library to link, under which tool to
# run, and which flags to use.
programs() {
    local under=$1
    shift
    program blocks $capi/examples/blocks.c gcc -std=c89 "$@"
    program slab $capi/examples/slab.c gcc -std=c89 "$@"
    program daemon $capi/examples/daemon.c gcc -std=c89 "$@"
    program owned $capi/examples/owned.cpp g++ -std=c++17 "$@"
    program misuse_cpp $capi/tests/c/misuse.c g++ -x c++ "$@" -x none
    program ahead $capi/tests/c/ahead.cpp g++ -std=c++11 "$@"
    local name
    for name in blocks slab owned misuse_cpp ahead; do
        $under "$work/$name"
    done
    # A child of `fork` does not free memory of its parent's other threads.
    [[ $(ASAN_OPTIONS=detect_leaks=0 ${under/--leak-check=full/--leak-check=no} "$work/daemon") == "written before daemon()" ]]
    local test
    for test in "${tests[@]}"; do
        program "$test" "$capi/tests/c/$test.c" gcc -std=c89 "$@"
        if [[ $test == forked ]]; then under=${under/--leak-check=full/--leak-check=no}; fi
        $under "$work/$test"
    done
}

with_cmake() {
    cmake -S $capi/examples -B "$work/cmake" -DCMAKE_PREFIX_PATH="$root$prefix" >"$work/log" || { cat "$work/log"; return 1; }
    cmake --build "$work/cmake" && ctest --test-dir "$work/cmake" --output-on-failure
}

# Users of other libraries over a pool: jemalloc's extents, an arena of mimalloc, and buffers of io_uring without
# privileges.
clients() {
    more=-ljemalloc program jemalloc $capi/examples/jemalloc.c gcc -std=gnu99 "$capi/examples/jemalloc_hooks.c"
    "$work/jemalloc"
    "$work/jemalloc" memfd
    PAGESET_RSEQ=0 "$work/jemalloc"
    more=-lmimalloc program mimalloc $capi/examples/mimalloc.c gcc -std=gnu99
    "$work/mimalloc"
    # Run programs whose malloc is replaced from outside, by the library that the package installed.
    local preload name
    preload=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)
    for name in blocks slab uses threads; do
        LD_PRELOAD=$preload "$work/$name"
    done
    program io_uring $capi/examples/io_uring.c gcc -std=gnu99
    if ((UID == 0)); then
        chmod -R a+rX "$work"
        setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all "$work/io_uring"
    else
        "$work/io_uring"
    fi
}

# Links programs with the static library for musl, dynamically and as a whole statically, and runs them.
with_musl() {
    local target=x86_64-unknown-linux-musl library unwinder name how
    if command -v rustup >/dev/null; then rustup target add $target; fi
    command -v musl-gcc >/dev/null || apt-get install -y musl-tools
    cargo build --package pageset-capi --profile dist --target $target
    library=${CARGO_TARGET_DIR:-target}/$target/dist/libpageset_capi.a
    unwinder=$(rustc --print target-libdir --target $target)/self-contained
    for how in -pie -static; do
        for name in examples/blocks examples/slab examples/daemon tests/c/misuse tests/c/uses tests/c/threads \
            tests/c/forked tests/c/handler; do
            musl-gcc $how -std=gnu99 -pedantic -Wall -Wextra -Werror -O1 -g -I$capi/include $capi/$name.c \
                "$library" "-L$unwinder" -lunwind -o "$work/with_musl"
            "$work/with_musl"
        done
    done
}

if [[ ${1:-} == musl ]]; then
    run "programs with musl" with_musl
    exit
fi
run "setup" setup
run "install" install_library
if [[ ${1:-} == header ]]; then
    cp "$root$prefix/include/pageset.h" $capi/include/pageset.h
    exit
fi
run "what is installed" look
for link in shared static; do
    run "programs, $link" programs ""
done
run "programs by CMake" with_cmake
run "jemalloc, mimalloc and io_uring over a pool" clients
# AddressSanitizer instruments the C code. In the library, it checks only the use of the heap, and leaks.
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1
run "programs under AddressSanitizer" programs "" -fsanitize=address,undefined
# valgrind registers no area for restartable sequences, so the library uses locks there.
link=shared
valgrind="valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"
run "programs under valgrind" programs "$valgrind"
unset ASAN_OPTIONS UBSAN_OPTIONS
run "programs with musl" with_musl
echo "ci/capi.sh: passed in $SECONDS s"
