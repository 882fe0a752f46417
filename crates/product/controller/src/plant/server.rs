//! The Modbus face of the process.

use super::PlantError;
use super::PlantOptions;
use super::door::{Door, Entry, Guest, Right};
use super::log::{Line, Log, Rejection};
use crate::modbus::registers::{
    OUTPUT_BLOCK, STAMP_REGISTERS, get_output_block, put_f32, put_u32, put_u64,
};
use crate::tanks::Process;
use crate::{OutputStamp, TimeSource};
use bumpless_base::{Instant, Random};
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_modbus::server::Service;
use tokio_modbus::server::tcp::Server;
use tokio_modbus::{ExceptionCode, Request, Response};

/// Input registers of the plant.
pub mod input {
    /// Four levels in cm, binary32.
    pub const LEVELS: u16 = 0;
    /// Process time in s, binary32.
    pub const PROCESS_TIME: u16 = 8;
    /// The accepted epoch, 32 bits; zero before the first write.
    pub const EPOCH: u16 = 10;
    /// The cycle of the last accepted write, 64 bits.
    pub const CYCLE: u16 = 12;
    /// Number of input registers.
    pub const COUNT: u16 = 16;
}

/// Most connections at a time; more are closed at once.
pub(super) const CONNECTIONS_MAX: usize = 64;
const OUTPUTS: usize = 2;

/// What lies behind the registers of a simulated field device.
pub trait Simulated: Send {
    /// How many outputs are written to it.
    fn outputs(&self) -> usize;

    /// Moves it on to this time since its start, in seconds.
    fn advance_to(&mut self, seconds: f64);

    /// All its input registers, after a write with this stamp was accepted last.
    fn registers(&mut self, accepted: Option<OutputStamp>) -> Vec<u16>;

    /// Takes outputs that were accepted.
    fn take(&mut self, stamp: OutputStamp, outputs: &[f64]);

    /// What the log says of it from time to time, at `at_ns`.
    fn line(&self, at_ns: u64) -> Option<Line>;

    /// What the log says of a read of these registers that was answered, at `at_ns`.
    fn read_line(&self, at_ns: u64, first: u16, count: u16) -> Option<Line>;
}

/// The quadruple-tank process.
struct Tanks {
    process: Process,
    time_scale: f64,
    noise_cm: f64,
    noise: Random,
}

impl Tanks {
    fn new(options: &PlantOptions) -> Self {
        Self {
            process: Process::at_operating_point(),
            time_scale: options.time_scale,
            noise_cm: options.noise,
            noise: Random::new(options.seed),
        }
    }
}

impl Simulated for Tanks {
    fn outputs(&self) -> usize {
        OUTPUTS
    }

    fn advance_to(&mut self, seconds: f64) {
        self.process.advance_to(seconds * self.time_scale);
    }

    fn registers(&mut self, accepted: Option<OutputStamp>) -> Vec<u16> {
        let mut registers = Vec::with_capacity(input::COUNT.into());
        for level in *self.process.levels() {
            let noise = self.noise_cm * gaussian(&mut self.noise);
            put_f32(&mut registers, level + noise);
        }
        put_f32(&mut registers, self.process.time());
        put_u32(&mut registers, accepted.map_or(0, |stamp| stamp.epoch.0));
        put_u64(&mut registers, accepted.map_or(0, |stamp| stamp.cycle));
        registers
    }

    fn take(&mut self, _: OutputStamp, outputs: &[f64]) {
        self.process.set_voltages([outputs[0], outputs[1]]);
    }

    fn line(&self, at_ns: u64) -> Option<Line> {
        Some(Line::Levels {
            at_ns,
            process_s: self.process.time(),
            levels_cm: *self.process.levels(),
            voltages: self.process.voltages(),
        })
    }

    fn read_line(&self, _: u64, _: u16, _: u16) -> Option<Line> {
        None
    }
}

struct Inside {
    device: Box<dyn Simulated>,
    accepted: Option<OutputStamp>,
    log: Log,
}

/// The process, what it has accepted, and its log.
pub(super) struct Bench {
    clock: Box<dyn TimeSource>,
    started: Instant,
    check_epoch: bool,
    connections: AtomicUsize,
    inside: Mutex<Inside>,
}

impl Bench {
    /// Behind the registers is `device`, else the quadruple-tank process.
    pub(super) fn new(
        options: &PlantOptions,
        device: Option<Box<dyn Simulated>>,
        clock: Box<dyn TimeSource>,
        log: Log,
    ) -> Self {
        Self {
            started: clock.now(),
            clock,
            check_epoch: options.check_epoch,
            connections: AtomicUsize::new(0),
            inside: Mutex::new(Inside {
                device: device.unwrap_or_else(|| Box::new(Tanks::new(options))),
                accepted: None,
                log,
            }),
        }
    }

    /// The inside, moved on to the present.
    fn present(&self) -> (MutexGuard<'_, Inside>, Instant) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let elapsed = now.since(self.started).as_secs_f64();
        inside.device.advance_to(elapsed);
        (inside, now)
    }

    pub(super) fn log_levels(&self) {
        let (mut inside, now) = self.present();
        let line = inside.device.line(now.as_nanos());
        line.into_iter().for_each(|line| inside.log.put(line));
    }

    pub(super) fn close(&self) -> Result<(), PlantError> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.log.close()
    }

    fn read(&self, first: u16, count: u16) -> Result<Response, ExceptionCode> {
        let (mut inside, now) = self.present();
        let accepted = inside.accepted;
        let registers = inside.device.registers(accepted);
        let from = usize::from(first);
        let wanted = registers.get(from..from + usize::from(count));
        let wanted = wanted.filter(|_| count > 0);
        let wanted = wanted.ok_or(ExceptionCode::IllegalDataAddress)?;
        let line = inside.device.read_line(now.as_nanos(), first, count);
        line.into_iter().for_each(|line| inside.log.put(line));
        Ok(Response::ReadInputRegisters(wanted.to_vec()))
    }

    fn write(&self, first: u16, registers: &[u16]) -> Result<Response, ExceptionCode> {
        let (mut inside, now) = self.present();
        if first != OUTPUT_BLOCK || registers.len() != STAMP_REGISTERS + 2 * inside.device.outputs()
        {
            return Err(ExceptionCode::IllegalDataAddress);
        }
        let Some((stamp, outputs)) = get_output_block(registers) else {
            return Err(ExceptionCode::IllegalDataValue);
        };
        let reason = self.objection(inside.accepted, stamp, &outputs);
        if reason.is_none() {
            inside.accepted = Some(stamp);
            inside.device.take(stamp, &outputs);
        }
        inside.log.put(Line::Write {
            at_ns: now.as_nanos(),
            writer: stamp.writer.0,
            epoch: stamp.epoch.0,
            cycle: stamp.cycle,
            outputs: outputs
                .iter()
                .map(|v| v.is_finite().then_some(*v))
                .collect(),
            accepted: reason.is_none(),
            reason,
        });
        match reason {
            None => Ok(Response::WriteMultipleRegisters(
                first,
                registers.len() as u16,
            )),
            Some(_) => Err(ExceptionCode::IllegalDataValue),
        }
    }

    fn objection(
        &self,
        accepted: Option<OutputStamp>,
        stamp: OutputStamp,
        outputs: &[f64],
    ) -> Option<Rejection> {
        if !outputs.iter().all(|value| value.is_finite()) {
            return Some(Rejection::NotFinite);
        }
        let accepted = accepted.filter(|_| self.check_epoch)?;
        if stamp.epoch < accepted.epoch {
            return Some(Rejection::OlderEpoch);
        }
        let overtaken = stamp.epoch == accepted.epoch && stamp.cycle < accepted.cycle;
        overtaken.then_some(Rejection::OlderCycle)
    }
}

/// A standard normal deviate (Box and Muller).
fn gaussian(random: &mut Random) -> f64 {
    let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (radius, angle) = (unit(), unit());
    (-2.0 * radius.ln()).sqrt() * (core::f64::consts::TAU * angle).cos()
}

/// One client's connection; counted while it lives.
struct Session {
    bench: Arc<Bench>,
    /// By TLS, with whom.
    guest: Option<Arc<Guest>>,
}

impl Session {
    fn open(bench: Arc<Bench>, guest: Option<Arc<Guest>>) -> Option<Self> {
        let count = &bench.connections;
        if count.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX {
            return Some(Self { bench, guest });
        }
        count.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.bench.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Service for Session {
    type Request = Request<'static>;
    type Response = Response;
    type Exception = ExceptionCode;
    type Future = Ready<Result<Response, ExceptionCode>>;

    fn call(&self, request: Self::Request) -> Self::Future {
        ready(match request {
            Request::ReadInputRegisters(first, count) => self
                .permit(|right| right.read, "read")
                .and_then(|()| self.bench.read(first, count)),
            Request::WriteMultipleRegisters(first, registers) => self
                .permit(|right| right.write, "write")
                .and_then(|()| self.bench.write(first, &registers)),
            _ => Err(ExceptionCode::IllegalFunction),
        })
    }
}

impl Session {
    /// Refuses what the client's role has no right to, with the exception that Modbus/TCP Security has for it.
    fn permit(&self, of: impl Fn(Right) -> bool, what: &str) -> Result<(), ExceptionCode> {
        match &self.guest {
            Some(guest) if !of(guest.right()) => {
                guest.note_without_right(what);
                Err(ExceptionCode::IllegalFunction)
            }
            _ => Ok(()),
        }
    }
}

/// What carries a client's requests.
enum Way {
    Open(TcpStream),
    Secure(Entry),
}

impl AsyncRead for Way {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_read(context, into),
            Self::Secure(entry) => Pin::new(entry).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Way {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(entry) => Pin::new(entry).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(entry) => Pin::new(entry).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Open(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(entry) => Pin::new(entry).poll_shutdown(context),
        }
    }
}

/// Accepts connections until the listening socket breaks.
pub(super) async fn serve(
    listener: TcpListener,
    bench: Arc<Bench>,
    door: Option<Arc<Door>>,
) -> io::Result<()> {
    let server = Server::new(listener);
    let on_connected = |stream: TcpStream, from| {
        let (bench, door) = (bench.clone(), door.clone());
        async move {
            if stream.set_nodelay(true).is_err() {
                return Ok(None);
            }
            let Some(door) = door else {
                let session = Session::open(bench, None);
                return Ok(session.map(|session| (session, Way::Open(stream))));
            };
            let entered = door.open(stream, from).and_then(|entry| {
                let session = Session::open(bench, Some(entry.guest()))?;
                Some((session, Way::Secure(entry)))
            });
            Ok(entered)
        }
    };
    // A connection that breaks is the client's affair.
    loop {
        match server.serve(&on_connected, |_broken| {}).await {
            // The client left before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            ended => return ended,
        }
    }
}
