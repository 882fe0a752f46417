//! Reliable state transfer: sender and receiver cores without I/O, clock or random source.
//!
//! A node has one [`Sender`] and one [`Receiver`]; each serves all of its partners. Both are driven
//! by one thread: `handle_*` says what arrived and when, then `poll_*` is called until it has
//! nothing more, and `poll_timeout` says when to call `handle_timeout`. Applications, in threads of
//! their own, hold a [`Publisher`] for each channel they send and a [`Subscriber`] for each they
//! receive.
//!
//! Channels come and go while the others run: a [`SenderFactory`] or [`ReceiverFactory`] prepares one on
//! any thread, and `exchange` puts it in its place and gives back who was there.
//!
//! The protocol is RSTP-PP of the first paper, sections 7.2 to 7.4; `spec/transfer.md` numbers its
//! clauses and gives the reasons where the paper leaves a choice.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod event;
mod exchange;
mod handover;
mod place;
mod receiver;
mod round_trip;
mod sender;
mod setup;
mod sync;

pub use bumpless_base::{Distribution, Pieces, Revision, Unsent};
pub use event::{FailureCause, ReceiverEvent, SenderEvent};
pub use exchange::{ExchangeError, Refused};
pub use handover::{BUFFERS_PER_SIDE, Published, Publisher, StateView, Subscriber};
pub use place::ChannelPlace;
pub use receiver::{AckTransmit, Receiver, ReceiverFactory, ReceiverReplacement};
pub use sender::{Sender, SenderFactory, SenderReplacement, Transmit};
pub use setup::{
    LinkParameters, ReceiverChannel, ReceiverPeer, SenderChannel, SenderPeer, SetupError,
};
