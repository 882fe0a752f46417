//! An RTP stream (RFC 3550): GStreamer's own program on both ends, 50 packets of audio a second.

use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{RTP, Row, Stage};
use crate::demo::processes::{Process, describe};
use crate::iprp::hosts::address;
use crate::iprp::{LabError, impossible};

const PROGRAM: &str = "gst-launch-1.0";
/// Packets a second, and bytes of audio in each (G.711, 20 ms).
const RATE: u64 = 50;
const BYTES: u64 = 160;
const INSTALL: &str = "install it (Debian: apt install gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good) and measure again";

/// Between two looks whether the sender has ended, and how long it has beyond its stream.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

/// The program on a host, which ends with what this gives; what it says goes to a file in `folder`.
fn start(stage: &Stage<'_>, host: usize, folder: &Path, words: &str) -> io::Result<Process> {
    let mut command = Command::new(PROGRAM);
    command.arg("-q").args(words.split_whitespace());
    stage.site.hosts.host(host).put_into(&mut command);
    Process::spawn(command, folder, ["sender", "receiver"][host])
}

fn receiver(stage: &Stage<'_>, folder: &Path, into: &Path) -> io::Result<Process> {
    let at = address(0, 1);
    let words = format!(
        "udpsrc address={at} port={RTP} caps=application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0 \
         ! rtpjitterbuffer ! rtppcmudepay ! filesink buffer-mode=unbuffered sync=false location={}",
        into.display()
    );
    start(stage, 1, folder, &words)
}

/// Sends until it has ended by itself; how it has ended, and its first words.
fn send(stage: &mut Stage<'_>, folder: &Path, packets: u64) -> Result<Option<String>, LabError> {
    let to = address(0, 1);
    let words = format!(
        "audiotestsrc is-live=true num-buffers={packets} samplesperbuffer={BYTES} ! audio/x-raw,rate=8000,channels=1 ! mulawenc \
         ! rtppcmupay min-ptime=20000000 max-ptime=20000000 ! udpsink host={to} port={RTP}"
    );
    let mut sender = start(stage, 0, folder, &words).map_err(impossible)?;
    let looks = (stage.length + PATIENCE).as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        if let Some(status) = sender.ended() {
            let why = format!("{}: {}", describe(status), first_words(&sender));
            return Ok((!status.success()).then_some(why));
        }
        stage.site.sleep(LOOK)?;
    }
    Ok(Some(format!(
        "it did not end within {} s after its stream",
        PATIENCE.as_secs()
    )))
}

fn first_words(process: &Process) -> String {
    let words = process.last_words();
    words.lines().next().unwrap_or("it says nothing").to_owned()
}

/// Runs both ends; the inner error says why this computer cannot.
pub fn run(stage: &mut Stage<'_>, name: &str) -> Result<Result<Row, String>, LabError> {
    let folder = tempfile::tempdir().map_err(impossible)?;
    let audio = folder.path().join("audio");
    // Whoever sends first begins the session.
    let open = || UdpSocket::bind((address(0, 0), 0));
    let poke = stage.site.hosts.host(0).run(open).map_err(impossible)?;
    let poke = poke.map_err(impossible)?;
    stage.begin("udp", RTP, || {
        let _ = poke.send_to(&[0], (address(0, 1), RTP));
    })?;
    let mut receiver = match receiver(stage, folder.path(), &audio) {
        Ok(receiver) => receiver,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(format!("{PROGRAM} is not installed; {INSTALL}")));
        }
        Err(error) => return Err(impossible(format_args!("cannot start {PROGRAM}: {error}"))),
    };
    // It opens its socket within that time, or has ended.
    stage.site.sleep(super::SETTLE * 3)?;
    if receiver.ended().is_some() {
        let first = first_words(&receiver);
        return Ok(Err(format!("{PROGRAM} cannot receive: {first}; {INSTALL}")));
    }
    stage.site.take();
    let packets = (stage.length.as_millis() as u64 * RATE / 1_000).max(1);
    let (failed, copies) = stage.under_faults(|stage| send(stage, folder.path(), packets))?;
    drop(receiver);
    if let Some(why) = failed {
        return Ok(Err(format!("{PROGRAM} cannot send ({why}); {INSTALL}")));
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
        note: format!("{bytes} bytes of audio came; its jitter buffer would hide a double"),
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
