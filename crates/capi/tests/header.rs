//! The header is the one that is made of the source. To renew it: `PAGESET_HEADER=write cargo test -p pageset-capi --test header`.

use std::path::Path;

#[test]
fn the_header_is_made_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at = root.join("include/pageset.h");
    let mut made = Vec::new();
    cbindgen::generate(root).expect("the source can be parsed").write(&mut made);
    if std::env::var_os("PAGESET_HEADER").is_some_and(|value| value == "write") {
        std::fs::write(&at, &made).expect("the header can be written");
    }
    let committed = std::fs::read(&at).unwrap_or_default();
    assert!(
        committed == made,
        "include/pageset.h is old: PAGESET_HEADER=write cargo test -p pageset-capi --test header"
    );
}
