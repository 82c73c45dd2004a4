//! Links the shared library so that `dlclose` does not unmap it. The kernel may have interrupted a thread in
//! a sequence of the library, and reads the sequence's descriptor in the library when the thread runs again.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
