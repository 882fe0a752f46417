//! The file of a program: whether it is there and what it should be, and its hash.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ring::digest::{Context, SHA256};

use crate::model::{PROGRAM_MAX, ProgramHost};

/// With what a WebAssembly module begins.
const WASM: &[u8] = b"\0asm";

/// SHA-256 of the file at `path`, which `host` is to run.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(crate) fn read(path: &Path, host: &ProgramHost) -> Result<[u8; 32], (String, String)> {
    let shown = path.display();
    let refused = |error: std::io::Error| {
        let wrong = format!("{shown} cannot be read: {error}");
        (
            wrong,
            "put the program there, on each node, or give its path".to_owned(),
        )
    };
    // Before it is opened: opening a pipe waits for its other end.
    let found = fs::metadata(path).map_err(refused)?;
    if !found.is_file() || found.len() > PROGRAM_MAX {
        let wrong = format!("{shown} is no regular file of at most {PROGRAM_MAX} bytes");
        return Err((wrong, "give the path of the program's file".into()));
    }
    let runs_itself = match host {
        ProgramHost::Wasm => false,
        ProgramHost::Plc => true,
        ProgramHost::Process { command, .. } => command.is_empty(),
    };
    if runs_itself && found.permissions().mode() & 0o111 == 0 {
        let wrong = format!("{shown} is not executable");
        let right = "make it executable (`chmod +x`), or name in command what runs it";
        return Err((wrong, right.into()));
    }
    let mut file = File::open(path).map_err(refused)?.take(PROGRAM_MAX);
    let (mut hash, mut buffer, mut first) = (Context::new(&SHA256), vec![0; 1 << 16], true);
    loop {
        let count = file.read(&mut buffer).map_err(refused)?;
        if first && *host == ProgramHost::Wasm && !buffer[..count].starts_with(WASM) {
            let wrong = format!("{shown} is no WebAssembly module");
            let right =
                "give the .wasm file that your compiler makes; text (.wat) must be compiled first";
            return Err((wrong, right.into()));
        }
        first = false;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
    }
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(hash.finish().as_ref());
    Ok(sha256)
}
