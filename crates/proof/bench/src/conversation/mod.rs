//! The conversation between the bench and the programs it measures: orders in lines on a program's
//! standard input, answers in lines of JSON on its standard output (spec/bench.md).
//!
//! Every program that is measured speaks it, whatever language it is written in; the ones in
//! [`crate::peer`] do through [`mod@serve`].

pub mod answer;
pub mod order;
pub mod serve;

pub use answer::{Answer, ChannelTimes, Miss};
pub use order::{CyclicChannel, Order};
pub use serve::{ready, serve};
