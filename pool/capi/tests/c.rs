//! Compiles programs in C and C++ with the header and the libraries, and runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The directory where cargo puts the libraries.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("a test is in a directory").to_owned()
}

fn shared_library() -> PathBuf {
    libraries().join("libpageset_capi.so")
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("a C compiler is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
}

const C89: &[&str] = &["-std=c89"];
/// Libraries that the static library needs.
const SYSTEM: [&str; 4] = ["-lgcc_s", "-lpthread", "-ldl", "-lm"];

/// A compiled program in a temporary directory.
struct Program {
    directory: TempDir,
}

impl Program {
    /// Compiles a program with the static library.
    fn new(compiler: &str, flags: &[&str], source: &str) -> Self {
        Self::linked(compiler, flags, source, &[libraries().join("libpageset_capi.a")])
    }

    fn linked(compiler: &str, flags: &[&str], source: &str, libraries: &[PathBuf]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        succeed(
            Command::new(compiler)
                .args(["-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"])
                .args(flags)
                .arg("-I")
                .arg(root.join("include"))
                .arg("-o")
                .arg(program.path())
                .arg(root.join("tests/c").join(source))
                .args(["-x", "none"])
                .args(libraries)
                .args(SYSTEM),
        );
        program
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("program")
    }

    fn run(&self, arguments: &[&str]) {
        // `timeout` makes a program that hangs fail.
        succeed(Command::new("timeout").arg("120").arg(self.path()).args(arguments));
    }
}

/// Compiles a program and runs it.
fn run(compiler: &str, flags: &[&str], source: &str) {
    Program::new(compiler, flags, source).run(&[]);
}

#[test]
fn misuse_gets_an_error() {
    run("cc", C89, "misuse.c");
}

#[test]
fn every_function_does_what_the_header_says() {
    run("cc", C89, "uses.c");
}

#[test]
fn a_child_changes_nothing_and_waits_for_nothing() {
    run("cc", C89, "forked.c");
}

#[test]
fn threads_free_what_others_allocated() {
    run("cc", C89, "threads.c");
}

#[test]
fn the_header_is_cpp_too() {
    run("c++", &["-x", "c++"], "misuse.c");
}

#[test]
fn structs_can_be_declared_before_the_header() {
    run("c++", &["-std=c++11"], "ahead.cpp");
}

#[test]
fn fault_12_a_handler_that_allocates_never_waits_in_c() {
    run("cc", C89, "handler.c");
}

/// Tests a process that has both the static library and the shared library.
#[test]
fn a_handle_of_another_copy_of_the_library_is_refused() {
    let shared = shared_library();
    Program::new("cc", C89, "copies.c").run(&[shared.to_str().expect("cargo's paths are text")]);
}

/// A program that uses the library only by `dlopen`.
fn unload(library: &Path, arguments: &[&str]) {
    let program = Program::linked("cc", C89, "unload.c", &[]);
    let library = library.to_str().expect("cargo's paths are text");
    program.run(&[&[library], arguments].concat());
}

#[test]
fn fault_05_a_library_that_is_closed_stays_for_threads_that_used_it() {
    unload(&shared_library(), &[]);
}

#[test]
fn fault_05_a_plugin_that_forgets_its_pools_can_be_closed() {
    unload(&shared_library(), &["forget"]);
}

/// No linker option keeps the plugin loaded, so the pool itself must keep the plugin loaded.
#[test]
fn fault_05_a_plugin_with_the_static_library_can_be_closed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plugin = directory.path().join("libplugin.so");
    let names = ["config_init", "create", "destroy", "alloc", "free"];
    succeed(
        Command::new("cc")
            // Without `-Bsymbolic`, the plugin's calls could go to functions of the program with the same
            // names.
            .args(["-shared", "-Wl,-Bsymbolic"])
            .arg("-o")
            .arg(&plugin)
            .args(names.map(|name| format!("-Wl,-u,pageset_{name}")))
            .arg(libraries().join("libpageset_capi.a"))
            .args(SYSTEM),
    );
    for arguments in [&[][..], &["forget"]] {
        unload(&plugin, arguments);
    }
}

/// Whether the compiler can build programs with this sanitizer.
fn has_sanitizer(flag: &str) -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, program) = (directory.path().join("empty.c"), directory.path().join("empty"));
    std::fs::write(&source, "int main(void) { return 0; }").expect("the directory is ours");
    let built = Command::new("cc").arg(flag).arg(&source).arg("-o").arg(&program).output();
    built.is_ok_and(|output| output.status.success())
        && Command::new(&program).output().is_ok_and(|output| output.status.success())
}

/// Tests that AddressSanitizer reports the use of a free page, and accepts a correct program.
#[test]
fn address_sanitizer_finds_a_use_after_a_free() {
    const FLAG: &str = "-fsanitize=address";
    if !has_sanitizer(FLAG) {
        return;
    }
    let program = Program::new("cc", &["-std=c89", FLAG], "checked.c");
    program.run(&[]);
    for wrong in ["part", "discarded", "freed"] {
        let output = Command::new("timeout").arg("120").arg(program.path()).arg(wrong).output();
        let output = output.expect("it was built");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains("use-after-poison"), "{wrong}: {text}");
    }
}

/// Tests that valgrind's memcheck reports the use of a free page and of undefined contents. If valgrind is
/// missing, the test prints a note and passes.
#[test]
fn valgrind_finds_a_use_after_a_free_and_undefined_contents() {
    let is_installed = Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success());
    if !is_installed || !cfg!(target_arch = "x86_64") {
        eprintln!("NOT TESTED: no valgrind here (apt-get install valgrind), or another processor");
        return;
    }
    let program = Program::new("cc", &["-std=c89", "-g"], "checked.c");
    let under_valgrind = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["300", "valgrind", "--quiet", "--error-exitcode=99"]).arg(program.path());
        let output = command.args(arguments).output().expect("it is installed");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = under_valgrind(&[]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    for (wrong, found) in [
        ("part", "Invalid write of size 1"),
        ("discarded", "Invalid read of size 1"),
        ("freed", "Invalid read of size 1"),
        ("undefined", "depends on uninitialised value"),
    ] {
        let (code, text) = under_valgrind(&[wrong]);
        assert!(code == Some(99) && text.contains(found), "{wrong}: {code:?} {text}");
        assert!(text.contains("checked.c"), "in the program's own line: {text}");
    }
}

/// Tests that ThreadSanitizer reports no data race if a page passes between threads through the pool.
#[test]
fn thread_sanitizer_accuses_no_program_that_is_right() {
    const FLAG: &str = "-fsanitize=thread";
    if has_sanitizer(FLAG) {
        Program::new("cc", &["-std=c89", FLAG], "checked.c").run(&[]);
    }
}

/// Compiles `shortage.c` with a heap that can be exhausted, and runs a part of it.
fn shortage(part: &str) {
    let wraps =
        ["malloc", "calloc", "realloc", "posix_memalign", "free"].map(|name| format!("-Wl,--wrap={name}"));
    let flags: Vec<_> = C89.iter().copied().chain(wraps.iter().map(String::as_str)).collect();
    Program::new("cc", &flags, "shortage.c").run(&[part]);
}

#[test]
fn fault_06_a_heap_that_is_used_up_is_an_error_in_c() {
    shortage("heap");
}

#[test]
fn fault_06_address_space_that_is_used_up_is_an_error_in_c() {
    shortage("address space");
}

#[test]
fn fault_09_a_limit_of_file_sizes_is_an_error_in_c() {
    shortage("file size");
}

#[test]
fn fault_11_populate_in_c_does_itself_what_threads_would_that_cannot_be_started() {
    shortage("threads");
}

/// Builds the example `source` with the link options `linked`, and runs the example. Returns the example's
/// output.
fn example(source: &str, linked: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("program");
    let mut compiler = Command::new("cc");
    compiler.arg("-I").arg(root.join("include")).arg(root.join("examples").join(source));
    succeed(compiler.args(linked).arg("-o").arg(&program));
    let output = Command::new("timeout").arg("120").arg(&program).output().expect("it was built");
    assert!(output.status.success(), "{source}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Tests that the guide's program can be linked in each way that the guide describes.
#[test]
fn the_guides_example_is_linked_in_each_way() {
    let archive = libraries().join("libpageset_capi.a").display().to_string();
    let search = libraries().display().to_string();
    let ways: [&[&str]; 3] = [
        &[&archive],
        &["-static", &archive, "-lgcc_eh"],
        &[&format!("-L{search}"), "-lpageset_capi", &format!("-Wl,-rpath,{search}")],
    ];
    for way in ways {
        let text = example("blocks.c", way);
        assert!(text.contains("freed twice: refused\nhello in 512 pages"), "{way:?}: {text}");
    }
}

#[test]
fn the_guides_pinned_pool_can_be_registered() {
    let archive = libraries().join("libpageset_capi.a").display().to_string();
    assert!(example("pinned.c", &[&archive]).starts_with("register 268435456 bytes from 0x"));
}

#[test]
fn the_guides_daemon_takes_its_pool_over() {
    let archive = libraries().join("libpageset_capi.a").display().to_string();
    assert_eq!(example("daemon.c", &["-std=c89", &archive]), "written before daemon()\n");
}

#[test]
fn the_guides_slab_cache_fills_its_slabs() {
    let archive = libraries().join("libpageset_capi.a").display().to_string();
    // Each block of 16 pages has 327 objects of 200 bytes.
    assert_eq!(example("slab.c", &["-std=c89", &archive]), "300000 objects in 14688 pages\n");
}

#[test]
fn the_guide_names_every_counter() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/guide/c.md");
    let guide = std::fs::read_to_string(guide).expect("the repository has the book");
    let (_, counters) = guide.split_once("## Counters").expect("a section has the counters");
    let (counters, _) = counters.split_once("\n## ").expect("another section follows");
    let rows = counters.lines().filter(|line| line.starts_with("| `"));
    let first_cell = |line: &'_ str| line.split('|').nth(1).map(str::to_owned);
    let mut named: Vec<String> = rows
        .filter_map(first_cell)
        .flat_map(|cell| {
            cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect::<Vec<_>>()
        })
        .collect();
    let mut all: Vec<_> =
        pageset::BlockCounters::default().named().map(|(name, _)| name.to_owned()).collect();
    named.sort();
    all.sort();
    assert_eq!(named, all);
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/pageset.h"))
        .expect("the repository has the header");
    for name in all {
        assert!(header.contains(&format!("\"{name}\"")), "the header does not name {name}");
    }
}

/// Finds the lines of a text that begin with `word`. Returns the name that follows `word` in each line.
fn named_after<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let rests = text.lines().filter_map(move |line| line.trim_start().strip_prefix(word));
    rests.filter_map(|rest| rest.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next())
}

#[test]
fn the_page_of_calls_names_every_call_of_c_and_rust() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("the repository has it");
    let page = read("docs/book/src/reference/pool-calls.md");
    let header = read("pool/capi/include/pageset.h");
    let functions =
        ["int ", "const char *"].map(|word| named_after(&header, word).collect::<Vec<_>>()).concat();
    let functions: Vec<_> = functions.into_iter().filter(|name| name.starts_with("pageset_")).collect();
    assert!(functions.len() > 35, "{functions:?}");
    let fields = header.split_once("typedef struct pageset_config {").expect("it is there").1;
    let fields = fields.split_once('}').expect("it ends").0.lines();
    let fields = fields.filter_map(|line| line.strip_suffix(';')?.rsplit([' ', '*']).next());
    let fields = fields.filter(|name| !["struct_bytes", "version"].contains(name));
    let mut sources = vec![read("pool/pageset/src/builder.rs"), read("pool/pageset/src/pages/mod.rs")];
    let files = std::fs::read_dir(root.join("pool/pageset/src/pool")).expect("the pool is there");
    sources.extend(files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("text")));
    // The functions in `left_out` are hidden, or belong to other types.
    let left_out =
        ["alloc_first_of", "frames_in_use", "pop_frame", "push_frame", "builder", "with_worker", "bytes"];
    let calls = ["pub fn ", "pub unsafe fn "];
    let calls = calls.iter().flat_map(|word| sources.iter().flat_map(|text| named_after(text, word)));
    let calls: Vec<_> = calls.filter(|name| !left_out.contains(name)).collect();
    assert!(calls.len() > 30, "{calls:?}");
    for name in functions.into_iter().chain(fields).chain(calls) {
        let is_named = ["`", "::"].iter().any(|before| page.contains(&format!("{before}{name}`")));
        assert!(is_named, "reference/pool-calls.md does not name {name}");
    }
}

/// Tests that the limits in the header equal the library's limits.
#[test]
fn limits_of_the_header_are_those_of_the_pool() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/pageset.h"))
        .expect("the repository has the header");
    let limits = [
        ("PAGE_BYTES", pageset::PAGE_BYTES),
        ("MAX_ORDER", usize::from(pageset::Order::MAX.get())),
        ("MAX_PAGE_COUNT", pageset::Order::MAX.frames() as usize),
        ("MAX_POOLS", 4096),
    ];
    for (name, value) in limits {
        let line = format!("#define PAGESET_{name} {value}\n");
        assert!(header.contains(&line), "the header lacks {line}");
    }
}
