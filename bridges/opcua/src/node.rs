//! The node's side: its status, asked at its control socket (spec/status.md) as any other program of this computer asks.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A node that has not answered by then counts as one that does not.
const PATIENCE: Duration = Duration::from_millis(500);
/// No status is longer, bytes.
const STATUS_MAX: u64 = 4 << 20;

/// The status of the node whose control socket is `path`.
///
/// # Errors
/// Why there is none: nobody answers, not in time, or with something else.
pub async fn status(path: &Path) -> Result<Value, String> {
    let answer = timeout(PATIENCE, ask(path)).await;
    let at = path.display();
    let line = answer
        .map_err(|_| {
            format!(
                "the node at {at} does not answer within {} ms",
                PATIENCE.as_millis()
            )
        })?
        .map_err(|error| format!("no node answers at {at}: {error}{}", remedy(&error)))?;
    let status: Value = serde_json::from_str(&line)
        .map_err(|error| format!("what answers at {at} is no node: {error}"))?;
    match status["schema"].as_str() {
        Some("bumpless.status/1") => Ok(status),
        Some("bumpless.error/1") => Err(format!(
            "the node at {at} refuses: {}",
            status["error"].as_str().unwrap_or("without a reason")
        )),
        other => Err(format!(
            "what answers at {at} speaks {}, not bumpless.status/1",
            other.unwrap_or("something else")
        )),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run this as the node's user, or as a member of its control_group"
        }
        _ => "; is it running?",
    }
}

async fn ask(path: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(b"{\"command\":\"status\"}\n").await?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream).take(STATUS_MAX);
    reader.read_line(&mut line).await?;
    match line.ends_with('\n') {
        true => Ok(line),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    /// What `status` makes of a node that answers with `answer`, or with nothing at all.
    async fn answered(answer: Option<&'static str>) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let node = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // What is not read makes the end a reset.
            let mut request = String::new();
            BufReader::new(&mut stream)
                .read_line(&mut request)
                .await
                .unwrap();
            assert_eq!(request, "{\"command\":\"status\"}\n");
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                None => std::future::pending().await,
            }
        });
        let status = status(&path).await;
        node.abort();
        status
    }

    #[tokio::test]
    async fn what_is_no_status_is_told_as_such() {
        let good = "{\"schema\":\"bumpless.status/1\",\"pair\":\"p\"}\n";
        assert_eq!(answered(Some(good)).await.unwrap()["pair"], "p");
        for (answer, told) in [
            (
                Some("{\"schema\":\"bumpless.error/1\",\"error\":\"no\"}\n"),
                "refuses: no",
            ),
            (
                Some("{\"schema\":\"bumpless.witness/1\"}\n"),
                "speaks bumpless.witness/1",
            ),
            (Some("rubbish\n"), "is no node"),
            (Some("{\"schema\":"), "unexpected end of file"),
            (Some(""), "unexpected end of file"),
            (None, "does not answer within"),
        ] {
            let error = answered(answer).await.unwrap_err();
            assert!(error.contains(told), "{answer:?}: {error}");
        }
        let error = status(Path::new("/nowhere/node.sock")).await.unwrap_err();
        assert!(error.contains("is it running?"), "{error}");
    }
}
