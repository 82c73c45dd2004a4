//! Counts the instructions on the shortest path through a function without a call: its fast path.

use std::collections::{HashMap, VecDeque};
use std::process::Command;

/// The disassembly of this program.
pub(crate) fn disassembly() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output =
        Command::new("objdump").args(["-d", "--no-show-raw-insn", "-M", "intel"]).arg(program).output();
    let output = output.map_err(|error| format!("cannot run objdump (package binutils): {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// Instructions from a function's first one to its return, on the shortest path without a call.
pub(crate) fn path(disassembly: &str, function: &str) -> Result<u32, String> {
    let code =
        Code::of(disassembly, function).ok_or_else(|| format!("no function {function} in the program"))?;
    code.shortest().ok_or_else(|| format!("no way through {function} without a call"))
}

/// The successor of an instruction.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Falls,
    Jumps(u64),
    Branches(u64),
    Returns,
    /// A call, a trap, or a jump to an unknown place.
    Leaves,
}

/// A function's instructions: addresses and successors.
struct Code {
    next: Vec<(u64, Next)>,
}

impl Code {
    fn of(disassembly: &str, function: &str) -> Option<Self> {
        // Mangled names contain the length before the name: `16sequence_alloc_0`.
        let mangled = format!("{}{function}", function.len());
        let is_head = |line: &str| line.ends_with(">:") && line.contains(&mangled);
        let lines = disassembly.lines().skip_while(|line| !is_head(line)).skip(1);
        let next: Vec<_> = lines.take_while(|line| !line.is_empty()).filter_map(instruction).collect();
        (!next.is_empty()).then_some(Self { next })
    }

    fn shortest(&self) -> Option<u32> {
        let index: HashMap<_, _> =
            self.next.iter().enumerate().map(|(index, (at, _))| (*at, index)).collect();
        let mut seen = vec![false; self.next.len()];
        let mut ways = VecDeque::from([(0, 1)]);
        while let Some((at, count)) = ways.pop_front() {
            if at >= self.next.len() || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let mut jump = |target| ways.extend(index.get(target).map(|to| (*to, count + 1)));
            match &self.next[at].1 {
                Next::Returns => return Some(count),
                Next::Leaves => {}
                Next::Jumps(target) => jump(target),
                Next::Branches(target) => {
                    jump(target);
                    ways.push_back((at + 1, count + 1));
                }
                Next::Falls => ways.push_back((at + 1, count + 1)),
            }
        }
        None
    }
}

/// A line such as `  40107: jae    40123 <name+0x20>`.
fn instruction(line: &str) -> Option<(u64, Next)> {
    let (address, text) = line.trim().split_once(':')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let mut words = text.split_whitespace();
    let operation = words.next()?;
    let target = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    let next = match (operation, target) {
        ("ret", _) => Next::Returns,
        ("jmp", Some(target)) => Next::Jumps(target),
        ("call" | "jmp" | "ud2" | "hlt" | "int3", _) => Next::Leaves,
        (conditional, Some(target)) if conditional.starts_with('j') => Next::Branches(target),
        _ => Next::Falls,
    };
    Some((address, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_the_one_without_a_call() {
        let text = "
0000000000000100 <_ZN1x9fast_path17h00E>:
     100:\tcmp    eax,0x1
     103:\tjne    120 <_ZN1x9fast_path17h00E+0x20>
     105:\tmov    rax,QWORD PTR [rdi]
     108:\ttest   eax,eax
     10a:\tje     130 <_ZN1x9fast_path17h00E+0x30>
     10c:\tjmp    118 <_ZN1x9fast_path17h00E+0x18>
     118:\tret
     120:\tcall   500 <slow>
     125:\tret
     130:\tmov    eax,0x2
     135:\tjmp    QWORD PTR [rip+0x20]

0000000000000200 <other>:
     200:\tret
";
        assert_eq!(path(text, "fast_path"), Ok(7));
        assert!(path(text, "slow_path").is_err());
    }
}
