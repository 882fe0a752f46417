//! The libraries for programs in C, C++ and Python: they compile, install, and agree with this one on the memory.

mod common;

use std::fs;
use std::process::Command as Tool;

use bumpless_program::layout::Header;
use bumpless_testing::skip;
use common::languages::{c, ran};
use common::{need_compiler, python, workspace};

fn the_header_compiles_without_a_warning_in_c_and_cpp() {
    let compiler = need_compiler();
    let place = tempfile::tempdir().expect("a folder");
    let text = "#include <bumpless.h>\n#include <bumpless_guard.h>\nint use(void);\n\
                int use(void) { return BUMPLESS_PROTOCOL + bumpless_guard_register(0, NULL, BUMPLESS_GUARD_SOCKET, NULL, 0); }\n";
    for (name, arguments) in [
        ("use.c", &["-std=c99", "-pedantic"][..]),
        ("use.c", &["-std=c17"]),
        ("use.cpp", &["-x", "c++", "-std=c++11", "-pedantic"]),
        ("use.cpp", &["-x", "c++", "-std=c++20"]),
    ] {
        let source = place.path().join(name);
        fs::write(&source, text).expect("a file");
        let mut compile = Tool::new(&compiler);
        compile
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .arg(c())
            .args(arguments);
        ran(compile.args(["-fsyntax-only"]).arg(&source));
    }
}

fn the_library_installs_with_pkg_config_and_a_program_links_with_it() {
    need_compiler();
    if !Tool::new("make")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success())
    {
        skip("needs make");
    }
    let place = tempfile::tempdir().expect("a folder");
    let (build, prefix) = (place.path().join("build"), place.path().join("prefix"));
    fs::create_dir(&build).expect("a folder");
    for name in [
        "bumpless.h",
        "bumpless.c",
        "bumpless_guard.h",
        "bumpless_guard.c",
        "bumpless.pc.in",
        "Makefile",
    ] {
        fs::copy(c().join(name), build.join(name)).expect("a copy");
    }
    let told = format!("PREFIX={}", prefix.display());
    ran(Tool::new("make")
        .args(["-s", "-C"])
        .arg(&build)
        .args(["install", &told]));
    let described = fs::read_to_string(prefix.join("lib/pkgconfig/bumpless.pc")).expect("a file");
    let line = |key: &str| {
        let found = described.lines().find_map(|line| line.strip_prefix(key));
        let value = found
            .unwrap_or_else(|| panic!("{key} in {described}"))
            .trim();
        let prefix = prefix.display().to_string();
        value
            .replace("${includedir}", "${prefix}/include")
            .replace("${libdir}", "${prefix}/lib")
            .replace("${prefix}", &prefix)
    };
    let mut compile = Tool::new(need_compiler());
    compile
        .args(line("Cflags:").split(' '))
        .arg(workspace("examples/programs/c/level.c"));
    compile
        .args(line("Libs:").split(' '))
        .arg("-o")
        .arg(place.path().join("level"));
    ran(&mut compile);
}

/// Each field of the header with its offset.
fn fields() -> Vec<(&'static str, usize)> {
    macro_rules! offsets {
        ($($name:ident),+) => { vec![$((stringify!($name), core::mem::offset_of!(Header, $name))),+] };
    }
    offsets!(
        magic,
        version,
        program_version,
        total,
        inputs,
        outputs,
        inputs_at,
        outputs_at,
        state_at,
        state_max,
        request,
        command,
        cycle,
        period,
        track,
        old_version,
        old_len,
        answer,
        result,
        state_len,
        state_version,
        program_inputs,
        program_outputs,
        program_period,
        tracked,
        message_len,
        changes,
        converts,
        message
    )
}

fn c_and_python_lay_the_header_out_as_rust_does() {
    let expected: String = fields()
        .iter()
        .map(|(name, at)| format!("{name} {at}\n"))
        .collect();
    let place = tempfile::tempdir().expect("a folder");
    let rows: String = fields()
        .iter()
        .map(|(name, _)| format!("printf(\"{name} %zu\\n\", offsetof(struct header, {name}));\n"))
        .collect();
    let text = format!(
        "#include \"{}\"\nint main(void) {{ {rows} return 0; }}\n",
        c().join("bumpless.c").display()
    );
    let (source, program) = (place.path().join("print.c"), place.path().join("print"));
    fs::write(&source, text).expect("a file");
    ran(Tool::new(need_compiler())
        .arg("-I")
        .arg(c())
        .arg(&source)
        .arg("-o")
        .arg(&program));
    let printed = ran(&mut Tool::new(&program)).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), expected);

    let names: Vec<_> = fields().iter().map(|(name, _)| *name).collect();
    let code = format!(
        "import sys; sys.path.insert(0, {:?}); import bumpless\n\
         for name in {names:?}: print(name, getattr(bumpless._Header, name).offset)",
        workspace("crates/product/program/python")
            .display()
            .to_string()
    );
    let printed = ran(Tool::new(python()).args(["-B", "-c", &code])).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}

tests_and_programs!(
    the_header_compiles_without_a_warning_in_c_and_cpp,
    the_library_installs_with_pkg_config_and_a_program_links_with_it,
    c_and_python_lay_the_header_out_as_rust_does,
);
