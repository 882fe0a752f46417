//! Frames of a phasor measurement unit (IEEE C37.118.2, 6.4), 50 a second: to one host, and to a group with three receivers, of which
//! one joins late.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_bench::statistics::Summary;
use bumpless_net_linux::Clock;

use super::{MULTICAST, PMU, Row, Stage};
use crate::iprp::hosts::address;
use crate::iprp::{LabError, impossible};
use crate::synchrophasor::{frame, number_in};

pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 7, 7);
/// Frames a second.
const RATE: u32 = 50;
const EVERY: Span = Span::from_millis(1000 / RATE as u64);
/// The unit's number.
const ID: u16 = 7;
const LOOK: Duration = Duration::from_millis(20);

/// When each frame came, and how often.
type Came = BTreeMap<u32, (u64, u64)>;

/// Receives until `stop`.
fn receive(socket: &UdpSocket, stop: &AtomicBool) -> Came {
    let _ = socket.set_read_timeout(Some(LOOK));
    let (mut came, mut buffer) = (Came::new(), [0; 256]);
    while !stop.load(Ordering::Acquire) {
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let now = Clock.now().as_nanos();
        if let Some((_, number)) = number_in(RATE, &buffer[..length]) {
            came.entry(number).or_insert((now, 0)).1 += 1;
        }
    }
    came
}

/// A program that sends.
struct Unit {
    socket: UdpSocket,
    to: SocketAddr,
    next: u32,
    /// When each of the frames that count was sent.
    sent: BTreeMap<u32, u64>,
}

impl Unit {
    fn open(stage: &Stage<'_>, to: SocketAddr) -> Result<Self, LabError> {
        let open = || UdpSocket::bind((address(0, 0), 0));
        let socket = stage.site.hosts.host(0).run(open).map_err(impossible)?;
        Ok(Self {
            socket: socket.map_err(impossible)?,
            to,
            next: 0,
            sent: BTreeMap::new(),
        })
    }

    fn send(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        // What the host itself refuses is lost, and is counted as such.
        let _ = self.socket.send_to(&frame(ID, RATE, number), self.to);
        number
    }

    /// Sends at its rate; calls `at_half` in the middle.
    fn stream(&mut self, stage: &Stage<'_>, mut at_half: impl FnMut()) {
        let count = stage.length.as_millis() as u32 * RATE / 1000;
        let mut due = Clock.now();
        for at in 0..count {
            if at == count / 2 {
                at_half();
            }
            let now = Clock.now().as_nanos();
            let number = self.send();
            self.sent.insert(number, now);
            if stage.is_stopped() {
                return;
            }
            due += EVERY;
            Clock.sleep_until(due);
        }
    }

    /// What a receiver missed since `first`.
    fn row(&self, name: &str, came: &Came, first: u32) -> Row {
        let sent = || self.sent.range(first..);
        let of = |number: &u32| came.get(number);
        let delays = sent().filter_map(|(number, sent)| Some(of(number)?.0.saturating_sub(*sent)));
        Row {
            name: name.into(),
            unit: "frames",
            sent: sent().count() as u64,
            lost: sent().filter(|(number, _)| of(number).is_none()).count() as u64,
            doubled: came.values().filter(|(_, times)| *times > 1).count() as u64,
            delay_of: "one way",
            delay: Summary::of(delays),
            ..Row::default()
        }
    }
}

/// To one host.
pub fn one(stage: &mut Stage<'_>) -> Result<Row, LabError> {
    let to = SocketAddr::from((address(0, 1), PMU));
    let open = || UdpSocket::bind(to);
    let socket = stage.site.hosts.host(1).run(open).map_err(impossible)?;
    let (socket, stop) = (socket.map_err(impossible)?, AtomicBool::new(false));
    let mut unit = Unit::open(stage, to)?;
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&socket, &stop));
        let measured = stage
            .begin("udp", PMU, || {
                unit.send();
            })
            .and_then(|()| {
                stage.under_faults(|stage| {
                    unit.stream(stage, || {});
                    Ok(())
                })
            });
        stop.store(true, Ordering::Release);
        let came = receiving.join().unwrap_or_default();
        let ((), copies) = measured?;
        let row = unit.row("C37.118 frames, 50 a second, UDP", &came, 0);
        Ok(row.over(&copies).judged())
    })
}

/// Has a program of the receiving host be a member of the group.
fn member(stage: &Stage<'_>) -> Result<UdpSocket, LabError> {
    let open = || -> std::io::Result<UdpSocket> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, MULTICAST)).into())?;
        socket.join_multicast_v4(&GROUP, &address(0, 1))?;
        Ok(socket.into())
    };
    let socket = stage.site.hosts.host(1).run(open).map_err(impossible)?;
    socket.map_err(impossible)
}

/// To a group with three receivers.
pub fn several(stage: &mut Stage<'_>) -> Result<Vec<Row>, LabError> {
    let members = [member(stage)?, member(stage)?];
    let mut unit = Unit::open(stage, SocketAddr::from((GROUP, MULTICAST)))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (early, stop) = (&members, &stop);
        let receiving = early.each_ref().map(|it| scope.spawn(|| receive(it, stop)));
        let measured = stage
            .begin("udp", MULTICAST, || {
                unit.send();
            })
            .and_then(|()| {
                stage.under_faults(|stage| {
                    let mut late = None;
                    unit.stream(stage, || {
                        let joined = member(stage);
                        late = Some(joined.map(|it| scope.spawn(move || receive(&it, stop))));
                    });
                    Ok(late)
                })
            });
        // What the late one has is looked at when all have come to their end.
        stop.store(true, Ordering::Release);
        let mut came: Vec<_> = receiving.map(|it| it.join().unwrap_or_default()).into();
        let (late, copies) = measured?;
        if let Some(late) = late.transpose()? {
            came.push(late.join().unwrap_or_default());
        }
        let rows = came.iter().enumerate().map(|(at, came)| {
            let first = came.keys().next().copied().unwrap_or(u32::MAX);
            let (name, first) = match at {
                2 => ("multicast frames, one that joins in mid-stream", first),
                0 => ("multicast frames, first receiver", 0),
                _ => ("multicast frames, second receiver", 0),
            };
            unit.row(name, came, first).over(&copies).judged()
        });
        Ok(rows.collect())
    })
}
