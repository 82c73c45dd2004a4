//! Tests that the classes of the Python package have the same fields as the structs in Rust. The package's
//! own tests need Python: `cargo xtask ci night python`.

use std::path::Path;

/// Returns the text between `head` and `end` in a file: the fields of a type.
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
            body(&format!("lab/study/src/simulate/{file}.rs"), &format!("pub struct {name} {{\n"), "\n}\n");
        let class = body("pool/python/pageset/simulation.py", &format!("class {name}:\n"), "\n\n\n");
        let fields = fields.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(':'));
        for (field, _) in fields {
            assert!(class.contains(&format!("\n    {field}: ")), "{name} in Python has no `{field}`");
        }
        assert!(class.lines().any(|line| line.starts_with("    ") && line.contains(": ")), "{name}");
    }
}

/// Tests that children of `os.fork` see the huge pages of their parent, even when no huge page is left for a
/// copy.
///
/// `PAGESET_PYTHON` names a Python that has the package, such as the one of `cargo xtask ci night python`.
#[test]
#[ignore = "needs root, no huge page in use, and a Python with the package in PAGESET_PYTHON"]
fn fault_04_a_child_in_python_reads_huge_pages_when_none_is_left_for_a_copy() {
    let python = std::env::var_os("PAGESET_PYTHON").expect("PAGESET_PYTHON names a Python");
    let huge_pages = Path::new("/proc/sys/vm/nr_hugepages");
    let before = std::fs::read_to_string(huge_pages).expect("hugetlb is there");
    std::fs::write(huge_pages, "8").expect("root may set it");
    let script = "
import os, pageset
pool = pageset.Pool(16 << 20, backing='hugetlb-2m')
views = [memoryview(pool.alloc(9)) for _ in range(8)]
for view in views:
    view[0] = 7
written, read = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    os.read(written[0], 1)
    os._exit(sum(view[0] for view in views))
for view in views:
    view[0] = 9
os.write(written[1], b'.')
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
    let output = std::process::Command::new(python).args(["-c", script]).output();
    std::fs::write(huge_pages, before).expect("it is put back");
    let output = output.expect("PAGESET_PYTHON starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    // The child shares its parent's pages, so the child sees the values that the parent wrote later.
    assert_eq!(said.trim(), "72", "{errors}");
}
