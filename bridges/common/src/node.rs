//! The node's side: its status and values, asked at its control socket (spec/status.md) as any other program of this
//! computer asks.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A node that has not answered by then counts as one that does not.
const PATIENCE: Duration = Duration::from_millis(500);
/// No answer is longer, bytes.
const ANSWER_MAX: u64 = 4 << 20;

/// What a node says of itself.
#[derive(Clone, Debug)]
pub struct Said {
    /// As `bumpless.status/1`.
    pub status: Value,
    /// As `bumpless.values/1`; null where the node is of a version that does not tell them.
    pub values: Value,
}

/// What the node says whose control socket is `path`.
///
/// # Errors
/// Why nothing: nobody answers, not in time, or with something else.
pub async fn said(path: &Path) -> Result<Said, String> {
    Ok(Said {
        status: status(path).await?,
        values: values(path).await?,
    })
}

async fn status(path: &Path) -> Result<Value, String> {
    let at = path.display();
    let status = answer(path, "status").await?;
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

async fn values(path: &Path) -> Result<Value, String> {
    let values = answer(path, "values").await?;
    match values["schema"].as_str() {
        Some("bumpless.values/1") => Ok(values),
        _ => Ok(Value::Null),
    }
}

/// What answers to `command`.
async fn answer(path: &Path, command: &str) -> Result<Value, String> {
    let answer = timeout(PATIENCE, ask(path, command)).await;
    let at = path.display();
    let line = answer
        .map_err(|_| {
            format!(
                "the node at {at} does not answer within {} ms",
                PATIENCE.as_millis()
            )
        })?
        .map_err(|error| format!("no node answers at {at}: {error}{}", remedy(&error)))?;
    serde_json::from_str(&line).map_err(|error| format!("what answers at {at} is no node: {error}"))
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run this as the node's user, or as a member of its control_group"
        }
        _ => "; is it running?",
    }
}

async fn ask(path: &Path, command: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path).await?;
    let request = format!("{{\"command\":\"{command}\"}}\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream).take(ANSWER_MAX);
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
    async fn a_node_that_tells_no_values_is_shown_without_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let answers = [
            "{\"schema\":\"bumpless.status/1\"}\n",
            "{\"schema\":\"bumpless.error/1\",\"error\":\"request not understood\"}\n",
        ];
        let node = tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = String::new();
                BufReader::new(&mut stream)
                    .read_line(&mut request)
                    .await
                    .unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let said = said(&path).await.unwrap();
        assert_eq!(said.status["schema"], "bumpless.status/1");
        assert_eq!(said.values, Value::Null);
        node.await.unwrap();
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
        let error = said(Path::new("/nowhere/node.sock")).await.unwrap_err();
        assert!(error.contains("is it running?"), "{error}");
    }
}
