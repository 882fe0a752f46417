//! An RTP stream (RFC 3550): GStreamer's own program on both ends, 50 packets of audio a second.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{RTP, Row, Stage};
use crate::iprp::hosts::address;
use crate::iprp::{LabError, impossible};

const PROGRAM: &str = "gst-launch-1.0";
/// Packets a second, and bytes of audio in each (G.711, 20 ms).
const RATE: u64 = 50;
const BYTES: u64 = 160;
const INSTALL: &str = "install it (Debian: apt install gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good) and measure again";

/// A receiver that ends with this value.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(stage: &Stage<'_>, host: usize, words: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg("-q")
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    stage.site.hosts.host(host).put_into(&mut command);
    command
}

fn receiver(stage: &Stage<'_>, into: &Path, said: File) -> io::Result<Receiver> {
    let at = address(0, 1);
    let words = format!(
        "udpsrc address={at} port={RTP} caps=application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0 \
         ! rtpjitterbuffer ! rtppcmudepay ! filesink buffer-mode=unbuffered sync=false location={}",
        into.display()
    );
    command(stage, 1, &words).stderr(said).spawn().map(Receiver)
}

fn sender(stage: &Stage<'_>, packets: u64) -> Command {
    let to = address(0, 1);
    let words = format!(
        "audiotestsrc is-live=true num-buffers={packets} samplesperbuffer={BYTES} ! audio/x-raw,rate=8000,channels=1 ! mulawenc \
         ! rtppcmupay min-ptime=20000000 max-ptime=20000000 ! udpsink host={to} port={RTP}"
    );
    command(stage, 0, &words)
}

/// Runs both ends; the inner error says why this computer cannot.
pub fn run(stage: &mut Stage<'_>, name: &str) -> Result<Result<Row, String>, LabError> {
    let folder = tempfile::tempdir().map_err(impossible)?;
    let (audio, words) = (folder.path().join("audio"), folder.path().join("words"));
    // Whoever sends first begins the session.
    let open = || UdpSocket::bind((address(0, 0), 0));
    let poke = stage.site.hosts.host(0).run(open).map_err(impossible)?;
    let poke = poke.map_err(impossible)?;
    stage.begin("udp", RTP, || {
        let _ = poke.send_to(&[0], (address(0, 1), RTP));
    })?;
    let said = File::create(&words).map_err(impossible)?;
    let mut receiver = match receiver(stage, &audio, said) {
        Ok(receiver) => receiver,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(format!("{PROGRAM} is not installed; {INSTALL}")));
        }
        Err(error) => return Err(impossible(format_args!("cannot start {PROGRAM}: {error}"))),
    };
    // It opens its socket within that time, or has ended.
    stage.site.sleep(super::SETTLE * 3)?;
    if receiver.0.try_wait().is_ok_and(|ended| ended.is_some()) {
        let words = std::fs::read_to_string(&words).unwrap_or_default();
        let first = words.lines().next().unwrap_or("it says nothing").to_owned();
        return Ok(Err(format!("{PROGRAM} cannot receive: {first}; {INSTALL}")));
    }
    stage.site.take();
    let packets = (stage.length.as_millis() as u64 * RATE / 1_000).max(1);
    let (sent, copies) = stage.under_faults(|stage| {
        sender(stage, packets)
            .stderr(Stdio::null())
            .status()
            .map_err(impossible)
    })?;
    drop(receiver);
    if !sent.success() {
        return Ok(Err(format!("{PROGRAM} cannot send ({sent}); {INSTALL}")));
    }
    let bytes = std::fs::metadata(&audio).map_or(0, |it| it.len());
    Ok(Ok(row(name, packets, bytes).over(&copies).judged()))
}

/// What came, by the audio that the receiver has written.
fn row(name: &str, packets: u64, bytes: u64) -> Row {
    let came = bytes / BYTES;
    Row {
        name: name.into(),
        unit: "packets",
        sent: packets,
        lost: packets.saturating_sub(came),
        doubled: came.saturating_sub(packets),
        delay_of: "not told by it",
        note: format!("{bytes} bytes of audio came"),
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_that_did_not_come_is_lost_and_more_than_was_sent_came_twice() {
        assert_eq!(
            (
                row("r", 50, 50 * BYTES).lost,
                row("r", 50, 50 * BYTES).doubled
            ),
            (0, 0)
        );
        assert_eq!(row("r", 50, 48 * BYTES).lost, 2);
        assert_eq!(row("r", 50, 51 * BYTES).doubled, 1);
    }
}
