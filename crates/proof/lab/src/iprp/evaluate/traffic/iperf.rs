//! iperf3, of the system's own packages, over UDP and TCP.

use std::io;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{IPERF, Row, Stage};
use crate::iprp::hosts::address;
use crate::iprp::{LabError, impossible};

/// Bits a second, and bytes of a datagram.
const BITS: &str = "1M";
const LEN: &str = "1000";
/// Of what is sent before anything is measured, seconds.
const BEFORE: &str = "1";

/// Bytes that TCP may have on its way.
const ON_ITS_WAY: u64 = 64 << 10;

/// A server that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(stage: &Stage<'_>, host: usize, more: &[&str]) -> Command {
    let mut command = Command::new("iperf3");
    command
        .args(["--json", "--port", &IPERF.to_string()])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    stage.site.hosts.host(host).put_into(&mut command);
    command
}

/// Runs both ends; the inner error says why this computer cannot.
pub fn run(
    stage: &mut Stage<'_>,
    name: &str,
    is_udp: bool,
) -> Result<Result<Row, String>, LabError> {
    let mut serve = command(stage, 1, &["--server"]);
    let server = match serve.stdout(Stdio::null()).spawn() {
        Ok(child) => Server(child),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = "iperf3 is not installed; install it (Debian: apt install iperf3) and measure again";
            return Ok(Err(why.into()));
        }
        Err(error) => return Err(impossible(format_args!("cannot start iperf3: {error}"))),
    };
    stage.site.sleep(super::SETTLE)?;
    let protocol = if is_udp { "udp" } else { "tcp" };
    let seconds = stage.length.as_secs().max(1).to_string();
    let mut failed = None;
    let client = |stage: &Stage<'_>, seconds: &str| {
        let to = address(0, 1).to_string();
        let mut words = vec!["--client", &to, "--time", seconds, "--bitrate", BITS];
        words.extend(["--length", LEN]);
        words.extend(is_udp.then_some("--udp"));
        ask(command(stage, 0, &words))
    };
    // Its control connection is begun before it is replicated.
    if let Err(error) = client(stage, BEFORE) {
        failed = Some(error);
    }
    stage.begin(protocol, IPERF, || {})?;
    let (result, copies) = stage.under_faults(|stage| Ok(client(stage, &seconds)))?;
    drop(server);
    match (result, failed) {
        (Ok(result), None) => {
            let row = if is_udp {
                udp(name, &result)
            } else {
                tcp(name, &result)
            };
            Ok(row.map(|row| row.over(&copies)).map(|row| match is_udp {
                true => row.judged(),
                false => row.judged_as_reliable(),
            }))
        }
        (Err(error), _) | (_, Some(error)) => Err(impossible(error)),
    }
}

/// What a client says when it has ended.
fn ask(mut command: Command) -> Result<Value, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run iperf3: {error}"))?;
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match said["error"].as_str() {
        None if output.status.success() => Ok(said),
        Some(error) => Err(format!("iperf3: {error}")),
        None => Err(format!("iperf3 has ended ({})", output.status)),
    }
}

fn number(of: &Value, what: &str) -> Result<u64, String> {
    let it = of["end"].pointer(what).and_then(Value::as_u64);
    it.ok_or_else(|| format!("iperf3 does not tell {what}; it is of another version"))
}

fn udp(name: &str, said: &Value) -> Result<Row, String> {
    let jitter = said["end"]["sum"]["jitter_ms"].as_f64().unwrap_or(0.0);
    Ok(Row {
        name: format!("{name}, 1 Mbit/s"),
        unit: "datagrams",
        sent: number(said, "/sum/packets")?,
        lost: number(said, "/sum/lost_packets")?,
        delay_of: "not told by it",
        note: format!("jitter {jitter:.3} ms"),
        ..Row::default()
    })
}

/// Bytes that did not come, but for what is on its way when the client ends.
const fn missing(sent: u64, received: u64) -> u64 {
    let less = sent.saturating_sub(received);
    if less > ON_ITS_WAY { less } else { 0 }
}

fn tcp(name: &str, said: &Value) -> Result<Row, String> {
    let (sent, received) = (
        number(said, "/sum_sent/bytes")?,
        number(said, "/sum_received/bytes")?,
    );
    let retransmits = number(said, "/sum_sent/retransmits")?;
    let round_trip = said["end"]["streams"][0]["sender"]["mean_rtt"].as_f64();
    Ok(Row {
        name: format!("{name}, 1 Mbit/s"),
        unit: "bytes",
        sent,
        lost: missing(sent, received),
        delay_of: "round trip",
        note: format!(
            "{received} bytes came; {retransmits} segments repeated; mean round trip {:.1} ms",
            round_trip.unwrap_or(0.0) / 1000.0
        ),
        ..Row::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_iperf3_says_is_read_and_bytes_that_did_not_come_are_lost() {
        let said = json!({"end": {"sum": {"packets": 625, "lost_packets": 2, "jitter_ms": 2.9}}});
        let row = udp("u", &said).unwrap();
        assert_eq!((row.sent, row.lost), (625, 2));
        assert!(tcp("t", &said).unwrap_err().contains("/sum_sent/bytes"));
        let said = |received: u64| {
            json!({"end": {
                "sum_sent": {"bytes": 500_000, "retransmits": 4},
                "sum_received": {"bytes": received},
                "streams": [{"sender": {"mean_rtt": 12_100}}],
            }})
        };
        assert_eq!(tcp("t", &said(490_000)).unwrap().lost, 0);
        let half = tcp("t", &said(250_000)).unwrap();
        assert_eq!(half.lost, 250_000);
        assert!(!half.judged_as_reliable().held);
    }
}
