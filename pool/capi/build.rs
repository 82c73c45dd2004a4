//! Keeps the shared library loaded. Threads of the program may have been interrupted in its code, and the
//! kernel looks for the sequence there when they go on. So `dlclose` must not unmap it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
