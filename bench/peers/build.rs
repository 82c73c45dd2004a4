//! Builds mimalloc v2 next to v3, and jemalloc's hooks over a pool. Notes compilers and commit for the
//! results.
//!
//! The crate `libmimalloc-sys` has the sources of both versions and builds one of them. Both define the same
//! function names. So this links v2 into one object file where every name but two is local.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The whole of mimalloc as one file, and two visible functions.
const WRAPPER: &str = r#"
#include "static.c"
void *peers_mimalloc2_alloc(size_t size, size_t alignment) { return mi_malloc_aligned(size, alignment); }
void peers_mimalloc2_free(void *start) { mi_free(start); }
"#;

/// jemalloc's hooks over one pool, which lives as long as the process.
const POOL_HOOKS: &str = r#"
#include "jemalloc_hooks.c"
extent_hooks_t *peers_pool_hooks(pageset_pool *pool) {
    static struct pool_hooks hooks;
    return pool_hooks_open(&hooks, pool) == 0 ? &hooks.extent_hooks : NULL;
}
"#;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Grows with every commit.
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    println!("cargo::rerun-if-env-changed=PAGESET_COMMIT");
    println!("cargo::rustc-env=PEERS_CC={}", first_line("cc", &["--version"]));
    println!("cargo::rustc-env=PEERS_RUSTC={}", first_line(&variable("RUSTC"), &["--version"]));
    let commit = std::env::var("PAGESET_COMMIT")
        .unwrap_or_else(|_| first_line("git", &["rev-parse", "--short", "HEAD"]));
    println!("cargo::rustc-env=PEERS_COMMIT={commit}");
    build_mimalloc2();
    build_pool_hooks();
}

fn build_pool_hooks() {
    let capi = Path::new("../../pool/capi");
    for file in ["examples/jemalloc_hooks.c", "examples/jemalloc_hooks.h", "include/pageset.h"] {
        println!("cargo::rerun-if-changed={}", capi.join(file).display());
    }
    let wrapper = PathBuf::from(variable("OUT_DIR")).join("pool_hooks.c");
    std::fs::write(&wrapper, POOL_HOOKS).expect("the output directory may be written to");
    let mut build = cc::Build::new();
    build.include(capi.join("examples")).include(capi.join("include"));
    build.include(Path::new(&variable("DEP_JEMALLOC_ROOT")).join("include"));
    build.opt_level(3).debug(false).file(&wrapper).compile("peers_pool_hooks");
}

fn build_mimalloc2() {
    let include = PathBuf::from(variable("DEP_MIMALLOC_INCLUDE_DIR"));
    let versions =
        include.parent().and_then(Path::parent).expect("the include directory is in that of a version");
    let source = versions.join("v2");
    let out = PathBuf::from(variable("OUT_DIR"));
    let wrapper = out.join("mimalloc2.c");
    std::fs::write(&wrapper, WRAPPER).expect("the output directory may be written to");
    let mut build = cc::Build::new();
    build.include(source.join("include")).include(source.join("src")).file(&wrapper);
    // Release options, as in libmimalloc-sys.
    build.opt_level(3).debug(false).flag_if_supported("-ftls-model=initial-exec");
    build.define("MI_DEBUG", "0").define("MI_BUILD_RELEASE", None).define("NDEBUG", None).warnings(false);
    let objects = build.compile_intermediates();
    for object in &objects {
        let names =
            ["--keep-global-symbol=peers_mimalloc2_alloc", "--keep-global-symbol=peers_mimalloc2_free"];
        let status = Command::new("objcopy").args(names).arg(object).status();
        assert!(status.is_ok_and(|status| status.success()), "objcopy of binutils is needed");
    }
    let mut library = cc::Build::new();
    library.objects(&objects).compile("peers_mimalloc2");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// The first line a program prints; `unknown` if it cannot be run.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
