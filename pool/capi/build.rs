//! Links the shared library so that `dlclose` does not unmap the library. When a program calls `dlclose`, a
//! preempted thread may be inside a restartable sequence of the library. When the thread runs again, the
//! kernel reads the sequence's descriptor, which lies in the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
