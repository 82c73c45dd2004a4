#!/usr/bin/env bash
# The README and the book as a reader gets them: mdbook builds the book, LinkChecker follows every link between its pages, and
# harper looks for mistakes in spelling and grammar. Links to other sites are not followed.
#
# Needs npm, and python3 with venv. Installs mdbook with cargo, LinkChecker from PyPI and harper.js from npm, into the target
# directory. A minute, once mdbook is built; building it takes as long as building pageset.
#
# As root, LinkChecker becomes `nobody`, who must be able to read the book.
#
# A word that harper does not know, and is right: ci/docs/words.txt. A finding that is no mistake: ci/docs/accepted.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

mdbook=0.5.4
linkchecker=10.6.0
harper=2.10.0
tools=${CARGO_TARGET_DIR:-target}/tools
book=docs/book/book
export PATH=$PATH:$PWD/$tools/bin:$tools/bin
pages=(README.md crates/pageset/README.md docs/book/src/*.md docs/book/src/*/*.md)

setup() {
    local tool
    for tool in npm python3; do
        command -v "$tool" >/dev/null || { echo "no $tool: install it (Debian: apt-get install npm python3-venv)" >&2; return 1; }
    done
    # Without its server and its watcher, which take most of the time, and not optimised: the book has some thirty pages.
    if [[ $(mdbook --version 2>/dev/null) != *"$mdbook"* ]]; then
        cargo install mdbook --version "$mdbook" --locked --debug --no-default-features --root "$tools"
    fi
    python3 -m venv "$tools/docs-python"
    "$tools/docs-python/bin/pip" install --quiet "LinkChecker==$linkchecker"
    npm install --silent --no-audit --no-fund --prefix "$tools/harper" "harper.js@$harper"
}

links() {
    "$tools/docs-python/bin/linkchecker" --no-status --no-warnings --threads 2 "$PWD/$book/index.html"
}

# A checker that passes a page with a dead link would pass any.
links_can_fail() {
    local broken=$book/broken.html
    echo '<a href="no-such-page.html">dead</a>' >"$broken"
    if "$tools/docs-python/bin/linkchecker" --no-status "$PWD/$broken" >/dev/null; then
        echo "LinkChecker passes a dead link" >&2
        return 1
    fi
    rm "$broken"
}

run "setup" setup
run "book" mdbook build docs/book
run "links" links
run "links can fail" links_can_fail
run "grammar" node ci/docs/grammar.mjs "$tools/harper/node_modules/harper.js" "${pages[@]}"
