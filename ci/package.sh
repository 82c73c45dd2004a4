#!/usr/bin/env bash
# Whether the crates can be published as they are; nothing is uploaded. Packs each, builds it from its tarball and nothing else,
# tests all tarballs together, builds every combination of features and the documentation as docs.rs does, and builds with the
# oldest Rust that each crate names. If there is a baseline, says what changed for users since. An hour from nothing on two cores.
#
#   ci/package.sh [LEG...]      pack, test, features, oldest, docs, semver; all of them if none is named
#
# Installs the oldest Rust with rustup, and cargo-hack and cargo-semver-checks if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=${CARGO_TARGET_DIR:-$PWD/target}
unpacked=$target/tarballs

# Name, directory, version and oldest Rust of each crate that is published.
published() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, os, sys
metadata = json.load(sys.stdin)
for package in metadata["packages"]:
    if package["publish"] != []:
        directory = os.path.relpath(os.path.dirname(package["manifest_path"]), metadata["workspace_root"])
        print(package["name"], directory, package["version"], package["rust_version"])'
}
crates=$(published)
mapfile -t packages < <(awk '{print "--package=" $1}' <<<"$crates")

# Cargo builds each from its tarball, with the others from theirs.
pack() {
    cargo package "${packages[@]}" --all-features
}

# The tarballs as a workspace, where the repository has their directories: what is in no tarball is missed there. Tests of
# recordings and published tables read the repository's, which are larger than tarballs should be.
unpack() {
    rm -rf "$unpacked"
    mkdir -p "$unpacked/crates"
    local name directory version
    while read -r name directory version _; do
        tar --extract --gzip --file "$target/package/$name-$version.crate" --directory "$unpacked"
        mv "$unpacked/$name-$version" "$unpacked/$directory"
    done <<<"$crates"
    for directory in data docs machines studies; do
        ln -s "$PWD/$directory" "$unpacked/$directory"
    done
    echo "tests read data, docs, machines and studies of the repository, which are in no tarball"
    cp Cargo.lock rust-toolchain.toml "$unpacked"
    {
        printf '[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n[patch.crates-io]\n'
        awk '{print $1 " = { path = \"" $2 "\" }"}' <<<"$crates"
    } >"$unpacked/Cargo.toml"
}

tests() {
    cargo test --manifest-path "$unpacked/Cargo.toml" --target-dir "$target" --workspace --all-features
}

features() {
    cargo hack --version >/dev/null 2>&1 || cargo install --locked cargo-hack --version 0.6.46
    cargo hack check "${packages[@]}" --feature-powerset
}

oldest() {
    local version
    for version in $(awk '{print $4}' <<<"$crates" | sort --unique); do
        mapfile -t of_version < <(awk -v version="$version" '$4 == version {print "--package=" $1}' <<<"$crates")
        rustup toolchain install "$version" --profile minimal --no-self-update
        cargo "+$version" check "${of_version[@]}" --all-features
    done
}

docs() {
    RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo +nightly doc "${packages[@]}" --all-features --no-deps
}

# ci/semver.baseline has the commit that users' programs are written for: the last release.
semver() {
    cargo semver-checks --version >/dev/null 2>&1 || cargo install --locked cargo-semver-checks --version 0.51.0
    local baseline name directory released=()
    baseline=$(cat ci/semver.baseline)
    while read -r name directory _; do
        # A crate that did not exist then has no users yet.
        if git cat-file -e "$baseline:$directory/Cargo.toml" 2>/dev/null; then
            released+=("--package=$name")
        else
            echo "$name is new since $baseline"
        fi
    done <<<"$crates"
    cargo semver-checks "${released[@]}" --all-features --baseline-rev "$baseline"
}

(($#)) || set -- pack test features oldest docs semver
for name in "$@"; do
    case $name in
        pack) run "tarballs, built" pack ;;
        test)
            run "tarballs, unpacked" unpack
            run "tarballs, tested" tests
            ;;
        features) run "combinations of features" features ;;
        oldest) run "oldest Rust" oldest ;;
        docs) run "documentation as on docs.rs" docs ;;
        semver) run "changes for users" semver ;;
        *)
            echo "ci/package.sh: no leg \`$name\`: use pack, test, features, oldest, docs or semver" >&2
            exit 2
            ;;
    esac
done
echo "ci/package.sh: all legs passed in $SECONDS s"
