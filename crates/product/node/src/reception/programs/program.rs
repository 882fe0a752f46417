//! A program that has registered sockets.

use std::fmt;
use std::fs;

/// A program, as the kernel told when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub user: u32,
    /// Its name; what is no letter, digit or sign of ASCII in it is shown as `?`.
    pub name: String,
}

impl Program {
    /// The program of a process.
    pub fn new(pid: i32, user: u32) -> Self {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Self {
            pid,
            user,
            name: printable(name.trim_end_matches('\n')),
        }
    }
}

/// A program chooses its name: nothing in it may reach a terminal but what is seen.
fn printable(name: &str) -> String {
    let seen = |it: char| if it.is_ascii_graphic() { it } else { '?' };
    name.chars().map(seen).collect()
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.name, self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_programs_name_reaches_a_terminal_but_what_is_seen() {
        assert_eq!(printable("ctl \u{1b}[2Jä"), "ctl??[2J?");
    }
}
