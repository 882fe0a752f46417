//! What a program's file names that hints at something outside of the state. It proves nothing: a library may name what
//! the program never calls. But a clock that outputs hang on only after an hour is found by no test that takes seconds.

use super::HostKind;

/// Names in the tables of an executable, and what they are for.
const FUNCTIONS: [(&str, &str); 11] = [
    ("time", "time()"),
    ("clock", "clock()"),
    ("clock_gettime", "clock_gettime()"),
    ("gettimeofday", "gettimeofday()"),
    ("rand", "rand()"),
    ("random", "random()"),
    ("drand48", "drand48()"),
    ("getrandom", "getrandom()"),
    ("socket", "socket()"),
    ("pthread_create", "pthread_create()"),
    ("fork", "fork()"),
];

/// Modules that scripts in Python import.
const MODULES: [(&str, &str); 7] = [
    ("time", "the module time"),
    ("datetime", "the module datetime"),
    ("random", "the module random"),
    ("secrets", "the module secrets"),
    ("uuid", "the module uuid"),
    ("socket", "the module socket"),
    ("threading", "the module threading"),
];

/// More than this of a file is not searched.
const SEARCHED: usize = 16 << 20;

/// What the file with this content names.
pub(super) fn in_file(host: HostKind, bytes: &[u8]) -> Vec<&'static str> {
    let bytes = &bytes[..bytes.len().min(SEARCHED)];
    match host {
        // Such names are refused when it is built; a module has no such imports.
        HostKind::Plc | HostKind::Wasm => Vec::new(),
        HostKind::Process if bytes.starts_with(b"\x7fELF") => in_executable(bytes),
        HostKind::Process => in_script(&String::from_utf8_lossy(bytes)),
    }
}

fn in_executable(bytes: &[u8]) -> Vec<&'static str> {
    let mut named = [false; FUNCTIONS.len()];
    for word in bytes.split(|&byte| byte == 0) {
        let found = FUNCTIONS
            .iter()
            .position(|(name, _)| name.as_bytes() == word);
        if let Some(at) = found {
            named[at] = true;
        }
    }
    // Rust's standard library names all of them in every program, and its own place in its messages.
    let is_rust = || bytes.windows(7).any(|part| part == b"/rustc/");
    if !named.contains(&true) || is_rust() {
        return Vec::new();
    }
    let functions = FUNCTIONS.iter().zip(named).filter(|(_, named)| *named);
    functions.map(|((_, words), _)| *words).collect()
}

fn in_script(text: &str) -> Vec<&'static str> {
    let imports = |module: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| match line.split_once(' ') {
            Some(("import", more)) => more.split(',').any(|one| {
                let name = one.split_whitespace().next().unwrap_or_default();
                name.split('.').next() == Some(module)
            }),
            Some(("from", more)) => {
                let name = more.split_whitespace().next().unwrap_or_default();
                name.split('.').next() == Some(module)
            }
            _ => false,
        })
    };
    let named = MODULES.iter().filter(|(module, _)| imports(module));
    named.map(|(_, words)| *words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_and_words_that_look_like_them_are_not() {
        let text = "import ctypes, time as t\n  from random import choice\n# import socket\nimport timeit\ntime = 1\n";
        assert_eq!(
            in_file(HostKind::Process, text.as_bytes()),
            ["the module time", "the module random"]
        );
        assert_eq!(in_file(HostKind::Process, b"import ctypes\n"), [""; 0]);
    }

    #[test]
    fn functions_are_found_by_their_whole_name() {
        let named = b"\x7fELF..\0clock_gettime\0xtime\0time\0strand\0";
        assert_eq!(
            in_file(HostKind::Process, named),
            ["time()", "clock_gettime()"]
        );
        assert_eq!(
            in_file(HostKind::Process, b"\x7fELF\0time\0a/rustc/b\0"),
            [""; 0]
        );
        assert_eq!(in_file(HostKind::Plc, named), [""; 0]);
    }
}
