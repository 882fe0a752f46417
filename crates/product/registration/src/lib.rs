//! A program tells the guard of its host how much of a socket's packets is to be received, in the manner of `setsockopt` (5.4.6;
//! `spec/reception.md`, V-80 and further).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bumpless_registration::{Terms, register};
//!
//! let socket = std::net::UdpSocket::bind("0.0.0.0:4713")?;
//! let terms = Terms { capacity: 200, period: std::time::Duration::from_millis(100), priority: 10 };
//! let _registered = register(&socket, &terms)?; // until it is dropped, or the process ends
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod client;
pub mod message;

pub use client::{Error, Registration, register, register_at};
pub use message::{Refusal, Terms, USUAL_SOCKET};
