#!/usr/bin/env bash
# Programs of the documentation that are shown with their [dependencies] do what a reader gets who copies them: each becomes a
# package of its own, beside a link to the sources. A program is run. A crate without std is built for x86_64-unknown-none, and its
# `boot` is run here. Two minutes from nothing on two busy cores, seconds when everything is built.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

pages=(docs/book/src/guide/which-allocator.md crates/core/README.md crates/blocks/README.md crates/pageset/README.md)
work=${CARGO_TARGET_DIR:-$PWD/target}/snippets
export CARGO_TARGET_DIR=$work/target
mkdir -p "$work"
ln -sfn "$PWD" "$work/pageset"

# A package for each block of TOML with [dependencies] and the block of Rust behind it. Prints their names.
packages() {
    python3 - "$work" "$@" <<'PYTHON'
import pathlib, re, sys
work = pathlib.Path(sys.argv[1])
count = 0
for page in sys.argv[2:]:
    text = pathlib.Path(page).read_text()
    for toml, rust in re.findall(r"```toml\n(\[dependencies\].*?)```\n+```rust\n(.*?)```", text, re.DOTALL):
        count += 1
        name = f"snippet-{count}"
        bare = "#![no_std]" in rust
        package = work / name
        (package / "src").mkdir(parents=True, exist_ok=True)
        manifest = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n{toml}'
        files = {"Cargo.toml": manifest, f"src/{'lib' if bare else 'main'}.rs": rust}
        if bare:
            (package / "tests").mkdir(exist_ok=True)
            boot = f"snippet_{count}::boot().unwrap().validate().unwrap()"
            files["tests/boot.rs"] = f"#[test]\nfn boots() {{\n    {boot};\n}}\n"
        for path, content in files.items():
            (package / path).write_text(content)
        print(name, "bare" if bare else "program", page)
PYTHON
}

bare() {
    cargo build --quiet --target x86_64-unknown-none --manifest-path "$work/$1/Cargo.toml"
    cargo test --quiet --manifest-path "$work/$1/Cargo.toml" --test boot
}

program() {
    cargo run --quiet --manifest-path "$work/$1/Cargo.toml"
}

rm -rf "$work"/snippet-*
count=0
while read -r name kind page; do
    # A program gets the versions that the workspace is tested with. Crates that the workspace lacks come in their newest version.
    cp Cargo.lock "$work/$name/"
    run "$name of $page" "$kind" "$name"
    count=$((count + 1))
done < <(packages "${pages[@]}")
# Three of the page, one of each README.
((count == 6)) || { echo "ci/snippets.sh: $count programs found, not 6" >&2; exit 1; }
