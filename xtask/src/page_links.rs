//! Checks that links between HTML pages lead to existing files, and to existing places in these files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Result;

/// Returns the values of all attributes with this name.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.match_indices(name).filter_map(move |(at, _)| {
        let behind = html[at + name.len()..].strip_prefix("=\"")?;
        html[..at].ends_with([' ', '\n']).then(|| behind.split('"').next().unwrap_or_default())
    })
}

fn pages(directory: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(())
}

/// Checks the links of all pages below a directory.
pub(crate) fn check(directory: &Path) -> Result {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut names = Vec::new();
    pages(directory, &mut names).map_err(failed)?;
    let mut texts = HashMap::new();
    for page in names {
        texts.insert(page.clone(), fs::read_to_string(&page).map_err(failed)?);
    }
    let mut dead = Vec::new();
    let mut links = 0;
    for (page, html) in &texts {
        // Skip pages that are shown in place of other pages, because their links are relative to those pages.
        if ["404.html", "toc.html", "print.html"].iter().any(|name| page.ends_with(name)) {
            continue;
        }
        for link in attributes(html, "href").chain(attributes(html, "src")) {
            if link.contains(':') || link.starts_with("//") || link.is_empty() {
                continue;
            }
            links += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let Ok(path) = path.canonicalize() else {
                dead.push(format!("{}: {link}: no such file", page.display()));
                continue;
            };
            let Some(text) = texts.get(&path) else { continue };
            if !place.is_empty() && !attributes(text, "id").any(|id| id == place) {
                dead.push(format!("{}: {link}: no such place", page.display()));
            }
        }
    }
    dead.sort();
    if links == 0 {
        return Err(format!("{}: no links found", directory.display()));
    }
    println!("{links} links between {} pages", texts.len());
    if dead.is_empty() { Ok(()) } else { Err(format!("dead links:\n{}", dead.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let directory = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        let page = |links: &str| fs::write(directory.join("a.html"), links).expect("a page can be written");
        page(r##"<p id="here"><a href="#here">x</a> <a href="https://elsewhere">y</a>"##);
        assert_eq!(check(&directory.canonicalize().expect("it is there")), Ok(()));
        page(r##"<a href="#there">x</a> <a href="b.html">y</a>"##);
        let error = check(&directory.canonicalize().expect("it is there")).expect_err("two links are dead");
        assert!(error.contains("#there: no such place") && error.contains("b.html: no such file"), "{error}");
        fs::remove_dir_all(&directory).expect("it can be removed");
    }
}
