//! The Python package has what the laboratory's values have. Its own tests need Python: `ci/python.sh`.

use std::path::Path;

/// The text of the lines that belong to a type, which begins with `head` and ends with `end`.
fn body(file: &str, head: &str, end: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(&path).expect("the file is in the repository");
    let (_, rest) = text.split_once(head).unwrap_or_else(|| panic!("{file} has `{head}`"));
    rest.split_once(end).map_or(rest, |(body, _)| body).to_owned()
}

#[test]
fn python_knows_every_field_of_a_simulation() {
    for (file, name) in [("spec", "RunSpec"), ("result", "RunResult"), ("result", "SharedUse")] {
        let fields =
            body(&format!("crates/lab/src/simulate/{file}.rs"), &format!("pub struct {name} {{\n"), "\n}\n");
        let class = body("python/pageset/simulation.py", &format!("class {name}:\n"), "\n\n\n");
        let fields = fields.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(':'));
        for (field, _) in fields {
            assert!(class.contains(&format!("\n    {field}: ")), "{name} in Python has no `{field}`");
        }
        assert!(class.lines().any(|line| line.starts_with("    ") && line.contains(": ")), "{name}");
    }
}
