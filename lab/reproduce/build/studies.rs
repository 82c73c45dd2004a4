//! Lists the built-in studies. A folder in `tables` is a study if it has a TOML file with the folder's name.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Writes Rust code with the names of the studies, and the names and texts of their files.
pub(crate) fn write(tables: &Path, to: &Path) -> io::Result<()> {
    let mut code = String::from("const BUNDLED: &[(&str, &[Bundled])] = &[\n");
    for folder in entries(tables)? {
        let name = name(&folder);
        if !folder.join(format!("{name}.toml")).is_file() {
            continue;
        }
        writeln!(code, "    ({name:?}, &[").expect("a text can be written to");
        for file in entries(&folder)? {
            let path = fs::canonicalize(&file)?;
            writeln!(code, "        ({:?}, include_str!({path:?})),", self::name(&file))
                .expect("a text can be written to");
        }
        code.push_str("    ]),\n");
    }
    code.push_str("];\n");
    fs::write(to, code)
}

/// Returns the files and folders in a folder, sorted by name.
fn entries(folder: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.retain(|path| !name(path).starts_with('.'));
    entries.sort();
    Ok(entries)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
