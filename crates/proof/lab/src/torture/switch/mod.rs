//! The switch of both networks: a thread that carries frames from port to port and makes faults.
//!
//! What becomes of a frame is decided by [`forward`], which knows neither devices nor clocks.

pub mod faults;
mod forward;
mod frame;
mod tap;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{Clock, Poller, Waker, realtime};

use faults::{Episode, NETWORKS, PORTS};
use forward::Forwarder;
pub use forward::{Flip, Flipped, Tally};
pub use frame::mac;
pub use tap::Tap;

/// Above everything that the switch serves, so that it is the network and not the scheduler that delays.
const PRIORITY: u8 = 40;
/// Frames that are taken from one port before the others have their turn.
const BATCH: usize = 64;
/// Longest sleep; orders wake it.
const IDLE: Duration = Duration::from_millis(500);

/// The devices, by network and port.
pub type Ports = [[Tap; PORTS]; NETWORKS];

enum Order {
    Begin(Episode),
    Clear,
    Flip(Flip),
    Report(Sender<Report>),
    End,
}

/// What the switch has done so far.
#[derive(Clone, Debug)]
pub struct Report {
    /// What became of frames.
    pub tally: Tally,
    /// Bits that were inverted on order.
    pub flipped: Vec<Flipped>,
}

/// The running switch; it ends with this value.
#[derive(Debug)]
pub struct Switch {
    orders: Sender<Order>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    /// Serves `ports`; draws from `seed`.
    ///
    /// # Errors
    /// There is no thread or descriptor to be had.
    pub fn start(ports: Ports, seed: u64) -> io::Result<Self> {
        let waker = Waker::new()?;
        let (orders, receiver) = channel();
        let wakes = waker.clone();
        let thread = thread::Builder::new()
            .name("switch".into())
            .spawn(move || {
                // Without the permission it is as prompt as everything else.
                let _ = realtime::set_fifo(PRIORITY);
                let _ = realtime::tighten_timers();
                serve(ports, &receiver, wakes, Forwarder::new(seed));
            })?;
        Ok(Self {
            orders,
            waker,
            thread: Some(thread),
        })
    }

    fn order(&self, order: Order) {
        // The receiver is there for as long as `self` is, unless the thread has panicked.
        let _ = self.orders.send(order);
        self.waker.wake();
    }

    /// Faults for some time, beside those that are there.
    pub fn begin(&self, episode: Episode) {
        self.order(Order::Begin(episode));
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.order(Order::Clear);
    }

    /// Inverts one bit of the next message that fits.
    pub fn flip(&self, flip: Flip) {
        self.order(Order::Flip(flip));
    }

    /// What it has done; `None` if its thread is gone.
    pub fn report(&self) -> Option<Report> {
        let (sender, receiver) = channel();
        self.order(Order::Report(sender));
        receiver.recv().ok()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.order(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut ports: Ports, orders: &Receiver<Order>, waker: Waker, mut forwarder: Forwarder) {
    let descriptors: Vec<_> = ports.iter().flatten().map(AsRawFd::as_raw_fd).collect();
    let mut poller = Poller::new(&descriptors, waker);
    loop {
        let due = forwarder.next_due_ns().map(Instant::from_nanos);
        let until = due.unwrap_or_else(|| Clock.now() + IDLE);
        // Out of memory for a moment: the next turn looks again.
        let ready = poller.wait(until).unwrap_or_default();
        for order in orders.try_iter() {
            match order {
                Order::Begin(episode) => forwarder.begin(episode),
                Order::Clear => forwarder.clear(),
                Order::Flip(flip) => forwarder.flip(flip),
                Order::Report(to) => {
                    let (tally, flipped) = (forwarder.tally, forwarder.flipped.clone());
                    let _ = to.send(Report { tally, flipped });
                }
                Order::End => return,
            }
        }
        for (index, tap) in ports.iter_mut().flatten().enumerate() {
            if ready.contains(index) {
                let now_ns = Clock.now().as_nanos();
                let frames = std::iter::from_fn(|| tap.receive()).take(BATCH);
                frames.for_each(|frame| {
                    forwarder.arrive(now_ns, index / PORTS, index % PORTS, frame);
                });
            }
        }
        while let Some(out) = forwarder.depart(Clock.now().as_nanos()) {
            if !ports[out.network][out.to].send(&out.frame) {
                forwarder.tally.refused += 1;
            }
        }
    }
}
