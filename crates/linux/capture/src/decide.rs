//! What is decided on packets that wait, however they were captured.

use std::fmt;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Accept,
    /// It ends here: its copies go instead.
    Drop,
    /// It goes no further than to this host's own members of the group of IPv4 that it is for, as its sender wants it (`IP_MULTICAST_LOOP`).
    /// Not for IPv6, where it leaves if its sender does not want it looped back: see [`crate::MemberInjector`].
    ///
    /// **Only where this host has been a member on the packet's interface since before it was sent** ([`crate::Joins`]):
    /// the kernel would let it leave otherwise.
    Keep,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// Its number among those that wait.
    pub id: u32,
    /// All of it.
    pub bytes: &'a [u8],
    /// The kernel's number of the interface by which it would leave; 0 for one that comes in.
    pub out: u32,
}

/// What decides on packets that wait.
pub trait Decide {
    /// On one packet. Of those before it whose verdict was [`Verdict::Drop`], `held` can still let some go on.
    fn decide(&mut self, packet: Queued<'_>, held: Held<'_>) -> Verdict;

    /// All that were there have been decided on, and what is not let go on after all is dropped when this returns.
    fn end(&mut self, held: Held<'_>);
}

/// One packet after the other.
pub(crate) struct Each<F>(pub F);

impl<F: FnMut(Queued<'_>) -> Verdict> Decide for Each<F> {
    fn decide(&mut self, packet: Queued<'_>, _: Held<'_>) -> Verdict {
        self.0(packet)
    }

    fn end(&mut self, _: Held<'_>) {}
}

/// Lets packets of a turn go on.
pub(crate) trait Release: fmt::Debug {
    /// Lets this one go on as it is.
    fn release(&self, id: u32);
}

/// Packets of a turn that are to be dropped at its end.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a>(&'a dyn Release);

impl<'a> Held<'a> {
    /// Those that `it` lets go on.
    pub(crate) fn of(it: &'a dyn Release) -> Self {
        Self(it)
    }

    /// Lets a packet go on after all.
    pub fn release(&self, id: u32) {
        self.0.release(id);
    }
}
