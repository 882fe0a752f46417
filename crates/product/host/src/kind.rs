//! What kind of program a file is, by its first bytes.

use std::fmt;

/// A kind of file that somebody could take for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A WebAssembly core module.
    Wasm,
    /// A WebAssembly component.
    WasmComponent,
    /// WebAssembly in its text format.
    WasmText,
    /// An executable or library of Linux.
    Elf,
    /// A script that names its interpreter.
    Script,
    /// None of these.
    Unknown,
}

impl Kind {
    /// What `bytes` begin as.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0, b'a', b's', b'm', _, _, 1, 0, ..] => Self::WasmComponent,
            [0, b'a', b's', b'm', ..] => Self::Wasm,
            [0x7f, b'E', b'L', b'F', ..] => Self::Elf,
            [b'#', b'!', ..] => Self::Script,
            _ if is_text_format(bytes) => Self::WasmText,
            _ => Self::Unknown,
        }
    }
}

/// Whether the first word that is no comment opens a module.
fn is_text_format(bytes: &[u8]) -> bool {
    let mut rest = bytes.trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b";;") {
        let end = comment.iter().position(|&byte| byte == b'\n');
        rest = comment[end.unwrap_or(comment.len())..].trim_ascii_start();
    }
    let inside = rest.strip_prefix(b"(").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| inside.starts_with(b"module"))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wasm => "a WebAssembly module",
            Self::WasmComponent => "a WebAssembly component",
            Self::WasmText => "WebAssembly in text format",
            Self::Elf => "an executable or library of Linux",
            Self::Script => "a script",
            Self::Unknown => "no program of a known kind",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_bytes() {
        let cases: [(&[u8], Kind); 9] = [
            (b"\0asm\x01\0\0\0", Kind::Wasm),
            (b"\0asm", Kind::Wasm),
            (b"\0asm\x0d\0\x01\0", Kind::WasmComponent),
            (b"\x7fELF\x02", Kind::Elf),
            (b"#!/bin/sh\n", Kind::Script),
            (b"  ;; a comment\n ( module)", Kind::WasmText),
            (b";;", Kind::Unknown),
            (b"", Kind::Unknown),
            (b"PROGRAM main", Kind::Unknown),
        ];
        for (bytes, kind) in cases {
            assert_eq!(Kind::of(bytes), kind, "{bytes:?}");
        }
    }
}
