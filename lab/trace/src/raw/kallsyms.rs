//! Reads lines of `/proc/kallsyms`, such as `ffffffff81621970 T alloc_pages_bulk_noprof`. The name of a
//! module may follow in brackets.

use std::io::{self, BufRead, Read as _};

/// Maximum bytes of a line. The name of a kernel symbol has up to 512 bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// A name in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    /// The symbol's address. `None` if this user may not see addresses.
    pub(super) address: Option<u64>,
    pub(super) is_code: bool,
    /// Whether the name belongs to a variable.
    pub(super) is_data: bool,
    pub(super) name: &'a str,
    pub(super) is_in_module: bool,
}

/// Calls `note` for each symbol of a text. Lines of another form are skipped.
///
/// # Errors
/// An error if the text cannot be read.
pub(super) fn read(mut text: impl BufRead, mut note: impl FnMut(Symbol<'_>)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        str::from_utf8(&line).ok().and_then(symbol).into_iter().for_each(&mut note);
    }
}

fn symbol(line: &str) -> Option<Symbol<'_>> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let (is_code, is_data) = (matches!(kind, "t" | "T"), matches!(kind, "b" | "B" | "d" | "D"));
    let name = words.next()?;
    let is_in_module = words.next().is_some();
    Some(Symbol {
        address: Some(address).filter(|address| *address != 0),
        is_code,
        is_data,
        name,
        is_in_module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_symbols_and_nonsense_none() {
        let text = "ffffffff81621970 T known\n0000000000000000 d hidden\nffffffffc0000000 t own\t[module]\n\
                    nonsense\nxyz T name\n\u{fe}\n";
        let mut found = Vec::new();
        let note = |symbol: Symbol<'_>| {
            found.push((symbol.address, symbol.is_code, symbol.name.to_owned(), symbol.is_in_module));
        };
        read(text.as_bytes(), note).unwrap();
        let expected = [
            (Some(0xffff_ffff_8162_1970), true, "known".to_owned(), false),
            (None, false, "hidden".to_owned(), false),
            (Some(0xffff_ffff_c000_0000), true, "own".to_owned(), true),
        ];
        assert_eq!(found, expected);
    }
}
