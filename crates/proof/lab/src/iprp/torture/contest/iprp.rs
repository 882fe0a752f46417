//! iPRP: ordinary datagrams, and a daemon on each host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_net_linux::Clock;

use crate::iprp::LabError;
use crate::iprp::flow::{Receiver, Senders};
use crate::iprp::hosts::Hosts;
use crate::iprp::site::Site;
use crate::iprp::torture::TortureOptions;
use crate::iprp::torture::known::{
    Attempt, Contestant, LEN, RATE, Stream, Trouble, befall, second_route,
};

/// For what is on its way.
const SETTLE: Duration = Duration::from_millis(500);
const NETWORKS: usize = 2;

impl Attempt for Site {
    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn sleep(&mut self, time: Duration) -> Result<(), LabError> {
        Self::sleep(self, time)
    }

    fn end_sender(&mut self) -> Result<(), LabError> {
        self.end_one(0, true);
        Ok(())
    }

    fn begin_sender(&mut self) -> Result<(), LabError> {
        self.begin(0)
    }
}

pub fn attempt(options: &TortureOptions, trouble: Trouble) -> Result<Contestant, LabError> {
    let mut site = Site::start(&options.binary, (NETWORKS, 1), options.seed, &options.stop)?;
    second_route(&site.hosts)?;
    let receiver = Receiver::start(&site.hosts, 1)?;
    let mut senders = Senders::new(&site.hosts, 1, LEN)?;
    site.wait("the stream is replicated", |site| {
        senders.send(0);
        site.replicated(NETWORKS) == 1
    })?;
    site.set(trouble.at_first().to_vec());
    let mut stream = Stream::default();
    let is_over = AtomicBool::new(false);
    let befell = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut due = Clock.now();
            while !is_over.load(Ordering::Acquire) {
                stream.sent.insert(senders.send(0), due.as_nanos());
                due += Span::from_micros(1_000_000 / u64::from(RATE));
                Clock.sleep_until(due);
            }
        });
        let befell = befall(&mut site, trouble);
        is_over.store(true, Ordering::Release);
        let _ = sending.join();
        befell
    });
    stream.befell = befell?;
    Attempt::sleep(&mut site, SETTLE)?;
    for ((_, number), came) in receiver.end() {
        stream.came.insert(number, (came.came_ns, came.times));
    }
    site.end();
    Ok(stream.judged("iPRP", env!("CARGO_PKG_VERSION")))
}
