//! Runs the commands in the transcripts of `cmd/`, of the README and of the book's guide. Each command must
//! print the text in its transcript.
//!
//! If you changed the output on purpose, run `TRYCMD=overwrite cargo test -p pageset-cli --test transcripts`,
//! and look at the diff.

use std::path::Path;

#[test]
fn commands_print_what_the_book_shows() {
    // Paths in the transcripts are relative to the root of the sources.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(root).expect("the root exists");
    let Some(commit) = option_env!("PAGESET_COMMIT") else {
        eprintln!(
            "skipped: the transcripts have a line for the commit, and this was built without knowing one"
        );
        return;
    };
    let cases = trycmd::TestCases::new();
    cases.insert_var("[COMMIT]", commit).expect("the name is in brackets");
    cases.case("lab/cli/tests/cmd/*.md");
    cases.case("README.md");
    cases.case("docs/book/src/guide/*.md");
}
