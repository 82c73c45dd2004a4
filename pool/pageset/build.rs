//! Sets two `cfg`s. `interpreted` means that Miri or shuttle runs the program, where neither restartable
//! sequences nor forks work. `sequences` means that restartable sequences may work.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(sequences)");
    println!("cargo::rustc-check-cfg=cfg(interpreted)");
    let is =
        |name: &str, value: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).is_ok_and(|is| is == value);
    let is_interpreted =
        ["MIRI", "SHUTTLE"].iter().any(|name| env::var_os(format!("CARGO_CFG_{name}")).is_some());
    if is_interpreted {
        println!("cargo::rustc-cfg=interpreted");
    } else if is("ARCH", "x86_64") && is("OS", "linux") {
        println!("cargo::rustc-cfg=sequences");
    }
}
