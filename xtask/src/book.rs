//! Builds the book as readers get it, and checks its pages.

use std::fs;

use crate::installed;
use crate::repository::{files, root, target};
use crate::run::{Context, Result};

const MDBOOK: &str = "0.5.4";
const LINK_CHECKER: &str = "10.6.0";
const HARPER: &str = "2.10.0";

pub(crate) fn build(context: &Context) -> Result {
    // Build mdbook without its server and its watcher, which take most of the time, and without optimisation,
    // because the book has only some thirty pages.
    installed::cargo_program(context, "mdbook", MDBOOK, "--debug --no-default-features")?;
    context.run("mdbook build docs/book")
}

/// Builds the book. LinkChecker follows every link between the book's pages, but no link to other sites.
/// harper looks for mistakes in spelling and grammar.
///
/// As root, LinkChecker becomes the user `nobody`, so this user must be able to read the book. Add correct
/// words that harper does not know to `ci/docs/words.txt`, and findings that are no mistakes to
/// `ci/docs/accepted.txt`.
pub(crate) fn prove(context: &Context) -> Result {
    installed::programs(context, &[("npm", "npm"), ("python3", "python3 python3-venv")])?;
    build(context)?;
    let environment = installed::python_environment(
        context,
        "python3",
        "docs",
        &[&format!("LinkChecker=={LINK_CHECKER}")],
    )?;
    let checker = format!("{environment}/bin/linkchecker --no-status");
    let book = root().join("docs/book/book");
    context
        .command(&format!("{checker} --no-warnings --threads 2"))
        .arguments([book.join("index.html")])
        .run()?;
    // Test the checker with a page that has a dead link: the checker must find this link.
    let broken = book.join("broken.html");
    fs::write(&broken, "<a href=\"no-such-page.html\">dead</a>")
        .map_err(|error| format!("the book: {error}"))?;
    let passes = context.command(&checker).arguments([&broken]).succeeds();
    fs::remove_file(&broken).map_err(|error| format!("the book: {error}"))?;
    if passes {
        return Err("LinkChecker passes a dead link".to_owned());
    }
    let harper = target().join("tools/harper");
    let install = format!("npm install --silent --no-audit --no-fund harper.js@{HARPER} --prefix");
    context.command(&install).arguments([&harper]).run()?;
    let is_page = |name: &str| {
        name.ends_with(".md") && name.starts_with("docs/book/src/")
            || ["README.md", "pool/pageset/README.md"].contains(&name)
    };
    let pages = files().into_iter().map(|file| file.name).filter(|name| is_page(name));
    let command =
        context.command("node ci/docs/grammar.mjs").arguments([harper.join("node_modules/harper.js")]);
    command.arguments(pages).run()
}
