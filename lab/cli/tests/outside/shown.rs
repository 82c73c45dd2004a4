//! Tests that the code on pages of the book equals the code in files. Pages repeat the code of files, so that
//! people can read the code without mdbook. A comment on the page names the file.

use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const BEGIN: &str = "<!-- shown: ";

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code at `place`: a whole file (`FILE`), or the part between its anchors of this name (`FILE:ANCHOR`).
fn code_at(place: &str) -> String {
    let Some((path, anchor)) = place.split_once(':') else { return read(place) };
    let (begin, end) = (format!("ANCHOR: {anchor}"), format!("ANCHOR_END: {anchor}"));
    let file = read(path);
    let inside = file.lines().skip_while(|line| !line.ends_with(&begin)).skip(1);
    let lines: Vec<_> = inside.take_while(|line| !line.ends_with(&end)).collect();
    assert!(!lines.is_empty(), "{place}: no such anchor");
    lines.join("\n")
}

/// The places that a page names, each with the code block after it.
fn shown(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split(BEGIN).skip(1);
    blocks
        .map(|block| {
            let (place, rest) = block.split_once(" -->\n```").expect("a block of code follows at once");
            let (_language, rest) = rest.split_once('\n').expect("a block of code has lines");
            (place, rest.split("\n```").next().expect("there is a first part"))
        })
        .collect()
}

#[test]
fn pages_show_the_code_as_it_is() {
    let mut count = 0;
    for page in [
        "docs/book/src/guide/kernel.md",
        "docs/book/src/guide/c.md",
        "docs/book/src/guide/pool-programs.md",
        "docs/book/src/guide/which-allocator.md",
        "docs/book/src/guide/reproduce.md",
    ] {
        let text = read(page);
        assert!(!text.contains("{{#include"), "{page}: a reader without mdbook sees no code");
        for (place, code) in shown(&text) {
            assert_eq!(code.trim_end(), code_at(place).trim_end(), "{page}: copy {place} anew");
            count += 1;
        }
    }
    assert_eq!(count, 19);
}
