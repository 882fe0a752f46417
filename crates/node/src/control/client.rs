//! The asking end, in another process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::Request;

const PATIENCE: Duration = Duration::from_secs(5);

/// Sends `request` to the node whose control socket is `path` and waits for the reply.
pub fn request(path: &Path, request: &Request) -> io::Result<Value> {
    let stream = UnixStream::connect(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "is the node running?",
            io::ErrorKind::PermissionDenied => "run this as the user who runs the node",
            _ => "see the node's log",
        };
        io::Error::new(
            error.kind(),
            format!("no node answers at {}: {error}; {hint}", path.display()),
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    writeln!(&stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .map_err(|error| no_answer(path, &error))?;
    if !line.ends_with('\n') {
        return Err(no_answer(path, &io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(serde_json::from_str(&line)?)
}

fn no_answer(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!(
            "the node at {} took the request and did not answer: {error}; try again, see its log",
            path.display()
        ),
    )
}
