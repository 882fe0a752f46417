//! A witness that has the pair's key and grants everything to everybody.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bumpless_base::{Epoch, Instant};
use bumpless_node::key_file;
use bumpless_node::witness::envelopes::{Envelopes, PairKey, ROOM};
use bumpless_secure::{RingSuite, place};
use bumpless_wire::{EnvelopeHeader, Packet, WitnessReply, WitnessRequest, parse};

use super::site::Site;

/// Such witnesses at all reference points; they end when dropped.
pub struct Liars {
    stop: Arc<AtomicBool>,
    /// Grants to the left node, and to the right one.
    pub grants: Arc<[AtomicU64; 2]>,
    threads: Vec<JoinHandle<()>>,
}

impl Liars {
    /// In the place of the witnesses of `site`.
    pub fn new(site: &Site) -> Self {
        let (stop, grants) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let pair = bumpless_config::pair_id(&site.plan.name);
        let start = |number: usize| {
            let address = site.plan.witnesses[number].1;
            let socket = site
                .hosts()
                .at("field", || UdpSocket::bind(address))
                .unwrap();
            let tenth = Duration::from_millis(100);
            socket.set_read_timeout(Some(tenth)).unwrap();
            let folder = site.path("");
            let key = key_file::load(&[site.key()], &folder).unwrap();
            let key = PairKey {
                keys: key,
                pair,
                origin: 0xA77A_C4E5 + number as u64,
            };
            let place = place(address);
            let envelopes = Envelopes::new([key], &[place], false, Instant::ZERO);
            let (stop, grants) = (Arc::clone(&stop), Arc::clone(&grants));
            std::thread::spawn(move || lie(&socket, envelopes, place, (&stop, &grants)))
        };
        let threads = (0..site.plan.witnesses.len()).map(start).collect();
        Self {
            stop,
            grants,
            threads,
        }
    }
}

impl Drop for Liars {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lie(
    socket: &UdpSocket,
    mut envelopes: Envelopes<RingSuite>,
    place: u32,
    (stop, grants): (&AtomicBool, &[AtomicU64; 2]),
) {
    let mut now = Instant::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let mut datagram = [0; 2048];
        let Ok((length, from)) = socket.recv_from(&mut datagram) else {
            continue;
        };
        now += bumpless_base::Duration::from_millis(10);
        let Ok((way, message)) = envelopes.open(place, &mut datagram[..length], now) else {
            continue;
        };
        let Ok(Packet::WitnessRequest(request)) = parse(message) else {
            continue;
        };
        let (mut encoded, mut room) = ([0; WitnessReply::LEN], [0; ROOM]);
        let length = granting(&request).encode(&mut encoded);
        room[EnvelopeHeader::LEN..][..length].copy_from_slice(&encoded[..length]);
        if let Some(datagram) = envelopes.seal(way, &mut room, length)
            && socket.send_to(datagram, from).is_ok()
        {
            grants[usize::from(request.node.0 & 1)].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whatever is asked is granted, and who asks has it.
fn granting(request: &WitnessRequest) -> WitnessReply {
    WitnessReply {
        pair: request.pair,
        group: request.group,
        node: request.node,
        kind: request.kind,
        granted: true,
        old: false,
        holder: request.node.0,
        epoch: Epoch(request.epoch.0),
        echo_sent_at: request.sent_at,
        holder_silent_us: u32::MAX,
        retry_after_us: 0,
        witness_session: 0x11A5,
        token: request.token,
    }
}
