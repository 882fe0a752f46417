//! One network as the data plane uses it: the driver, its pacer, who is where on it, and what protects messages.

mod states;

use std::os::fd::RawFd;
use std::sync::Arc;

use bumpless_base::{Counter, Counters, Instant, LinkId, PeerId};
use bumpless_net_linux::{Errno, Link, Pacer, Screen, Segment, SendFailure, SendOutcome};
use bumpless_secure::{Keyring, RingSuite, SealError, Suite};
use bumpless_transfer::{Sender, Transmit};
use bumpless_wire::EnvelopeHeader;

pub use self::states::SendState;
use super::addresses::{Addresses, Correspondent};
use super::protection::{BURST, Protection, Unsealed, Use};
use super::reached::Reached;
use super::strangers::Strangers;
use crate::snapshot::SendFailures;
use crate::wiring::LinkSettings;

/// "Value too large for defined data type" (errno of Linux).
const EOVERFLOW: i32 = 75;

/// A network's driver with what is needed to send on it.
pub struct LinkPort<L = Box<dyn Link + Send>, S: Suite = RingSuite> {
    id: LinkId,
    driver: L,
    pacer: Pacer,
    addresses: Addresses,
    reached: Reached,
    protection: Protection<S>,
    /// Padding that makes a message as long as the longest.
    zeros: Box<[u8]>,
    /// The packets of one burst; kept, because clearing room for them anew costs more than most turns.
    burst: Vec<Transmit>,
    /// What the driver said last of datagrams lost before it could receive them, and their sum.
    drops: (u32, Option<u64>),
    /// What keeps most datagrams of strangers from this process; `None`: nothing does.
    screen: Option<Screen>,
    strangers: Strangers,
    /// Datagrams lost while it did.
    screened: u64,
    failures: SendFailures,
    /// Set when the kernel's queue was full; cleared when it can take more.
    pub full: bool,
}

impl<L: Link, S: Suite> LinkPort<L, S> {
    /// A port for `driver`.
    pub fn new(
        id: LinkId,
        driver: L,
        settings: &LinkSettings,
        (addresses, protection): (Addresses, Protection<S>),
        now: Instant,
    ) -> Self {
        let pacer = Pacer::new(
            settings.bandwidth,
            settings.frame_overhead,
            settings.message_max,
            now,
        );
        let known = || {
            let all = addresses.partners.iter().chain(&addresses.references);
            Screen::new(all.flatten().copied())
        };
        Self {
            id,
            driver,
            pacer,
            screen: settings.screens.then(known),
            strangers: Strangers::new(now),
            screened: 0,
            reached: Reached::new(&addresses),
            addresses,
            protection,
            zeros: vec![0; settings.message_max.into()].into_boxed_slice(),
            burst: Vec::with_capacity(BURST),
            drops: (0, None),
            failures: SendFailures::default(),
            full: false,
        }
    }

    /// The network.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// The driver's descriptor.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.driver.descriptor()
    }

    /// What receiving takes: the driver, who is where, what opens messages, and whom this node's messages reach.
    pub fn receiving(&mut self) -> (&mut L, &Addresses, &mut Protection<S>, &mut Reached) {
        let Self {
            driver,
            addresses,
            protection,
            reached,
            ..
        } = self;
        (driver, addresses, protection, reached)
    }

    /// Forgets how messages differed when none has come since for a while.
    pub fn forget_mismatches(&mut self, now: Instant) {
        self.protection.forget_mismatches(now);
    }

    /// What protects messages here.
    pub const fn protection(&self) -> &Protection<S> {
        &self.protection
    }

    /// States leave at `bandwidth` bit/s from here on; zero: not paced.
    pub fn set_bandwidth(&mut self, bandwidth: u64, now: Instant) {
        self.pacer.set_bandwidth(bandwidth, now);
    }

    /// Asks the driver how many datagrams were lost before it could receive them.
    pub fn measure_drops(&mut self) {
        let Some(count) = self.driver.receive_drops() else {
            return;
        };
        let (before, sum) = self.drops;
        let (more, sum) = (u64::from(count.wrapping_sub(before)), sum.unwrap_or(0));
        self.drops = match self.strangers.is_screened() {
            true => {
                self.screened += more;
                (count, Some(sum))
            }
            false => (count, Some(sum + more)),
        };
    }

    /// So many datagrams of strangers have come since the last call.
    pub fn handle_strangers(&mut self, count: u32, now: Instant) {
        if let (Some(up), true) = (self.strangers.handle(count, now), self.screen.is_some()) {
            self.set_screen(up);
        }
    }

    /// Puts the screen up or takes it away. What was lost before is counted as it was then.
    #[cold]
    fn set_screen(&mut self, up: bool) {
        self.measure_drops();
        let screen = self.screen.as_ref().filter(|_| up);
        if self.driver.screen(screen) {
            self.strangers.screened(up);
        }
    }

    /// Whether most of what strangers send is dropped before this process sees it.
    pub const fn is_screened(&self) -> bool {
        self.strangers.is_screened()
    }

    /// Datagrams lost while that was so, when last asked for.
    pub const fn screened(&self) -> u64 {
        self.screened
    }

    /// Datagrams of this network lost before they could be received, when last asked for; `None` if
    /// the driver does not know.
    pub fn receive_drops(&self) -> Option<u64> {
        self.drops.1
    }

    /// Datagrams of this network that the kernel did not take.
    pub fn send_failures(&self) -> SendFailures {
        self.failures
    }

    /// Sends one datagram to a partner at once; small and rare ones (heartbeats, acknowledgements)
    /// are not held back by the pacer but are counted by it, and by `sender`: what comes after leaves later.
    pub fn send_to_partner(
        &mut self,
        peer: PeerId,
        bytes: &[u8],
        now: Instant,
        sender: &mut Sender,
        counters: &mut Counters,
    ) {
        let to = Correspondent::Partner(peer);
        self.send_one(to, (bytes, 0), now, sender, counters);
    }

    /// As [`send_to_partner`](Self::send_to_partner), followed by zeros up to the length of the longest packets of
    /// states: what passes shows that they do.
    pub fn send_at_full_length(
        &mut self,
        peer: PeerId,
        bytes: &[u8],
        now: Instant,
        sender: &mut Sender,
        counters: &mut Counters,
    ) {
        let zeros = self.zeros.len().saturating_sub(bytes.len());
        let to = Correspondent::Partner(peer);
        self.send_one(to, (bytes, zeros), now, sender, counters);
    }

    /// Sends one datagram to a reference point at once.
    pub fn send_to_reference(
        &mut self,
        reference: u8,
        bytes: &[u8],
        now: Instant,
        sender: &mut Sender,
        counters: &mut Counters,
    ) {
        let to = Correspondent::Reference(reference);
        self.send_one(to, (bytes, 0), now, sender, counters);
    }

    /// Sends `bytes`, followed by so many zeros, if `to` is on this network.
    fn send_one(
        &mut self,
        to: Correspondent,
        (bytes, zeros): (&[u8], usize),
        now: Instant,
        sender: &mut Sender,
        counters: &mut Counters,
    ) {
        if self.addresses.address(to).is_none() {
            return;
        }
        let len = bytes.len() + zeros;
        self.pacer.spent(self.pacer.wire_bytes(1, len), now);
        sender.note_sent(self.id, len, now);
        let padding = std::mem::take(&mut self.zeros);
        let segment = Segment {
            header: bytes,
            payload: &padding[..zeros],
        };
        self.hand_over(to, &[segment], (len, now), counters);
        self.zeros = padding;
    }

    fn hand_over(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
        (bytes, now): (usize, Instant),
        counters: &mut Counters,
    ) {
        let (outcome, overhead) = match self.send(to, messages, now) {
            Ok(sent) => sent,
            Err(Unsealed::NoKey) => {
                return counters.add(Counter::SendNoKey, messages.len() as u64);
            }
            Err(Unsealed::Refused(error)) => (unsealed(error), 0),
        };
        let sent = outcome.sent.min(messages.len());
        counters.add(Counter::DatagramsSent, sent as u64);
        let left = (messages.len() - sent) as u64;
        counters.add(Counter::SendFailures, left);
        self.failures.count += left;
        if let Some(failure) = outcome.failure {
            self.failures.last = Some((now, failure));
        }
        let sent_bytes = match sent == messages.len() {
            true => bytes,
            false => messages[..sent].iter().map(Segment::len).sum(),
        };
        let sent_bytes = sent_bytes + sent * overhead;
        counters.add(Counter::BytesSent, sent_bytes as u64);
        self.full |= outcome.failure == Some(SendFailure::Full);
    }

    /// Hands `messages` to the driver, protected if they must be. Returns what became of them, and the bytes that protect
    /// each.
    fn send(
        &mut self,
        to: Correspondent,
        messages: &[Segment<'_>],
        now: Instant,
    ) -> Result<(SendOutcome, usize), Unsealed> {
        let Some(address) = self.addresses.address(to) else {
            return Ok((SendOutcome::default(), 0));
        };
        let (driver, is_reached) = (&mut self.driver, self.reached.is_reached(to, now));
        let mut send = |datagrams: &[Segment<'_>]| match is_reached {
            true => driver.send_confirmed(address, datagrams),
            false => driver.send(address, datagrams),
        };
        let Some(sealed) = self.protection.seal(to, messages)? else {
            return Ok((send(messages), 0));
        };
        let outcome = match sealed.count() {
            1 => {
                let mut one = [Segment::default()];
                send(sealed.datagrams(&mut one))
            }
            _ => {
                let mut many = [Segment::default(); BURST];
                send(sealed.datagrams(&mut many))
            }
        };
        Ok((outcome, EnvelopeHeader::OVERHEAD))
    }

    /// As [`Protection::set_keys`].
    pub fn set_keys(
        &mut self,
        with: Correspondent,
        keys: &Arc<Keyring<S>>,
        way: Use,
        now: Instant,
    ) {
        self.protection.set_keys(with, keys, way, now);
    }
}

/// What cannot be protected stays.
#[cold]
fn unsealed(error: SealError) -> SendOutcome {
    let failure = match error {
        SealError::NoRoom => SendFailure::TooBig,
        // All counters of nine years are used up.
        SealError::Exhausted => SendFailure::Other(Errno(EOVERFLOW)),
    };
    SendOutcome {
        sent: 0,
        failure: Some(failure),
    }
}
