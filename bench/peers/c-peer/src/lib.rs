//! A peer in C behind the functions of `c/peer.h`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::slice;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::bail;
use bytes::Bytes;
use peer_conversation::{
    Acknowledgements, Arguments, Connections, TIMEOUT, Peer, Timing, Transfer, digest,
};

/// Room for a text that the peer writes.
const TEXT: usize = 1024;

#[repr(C)]
struct RawArguments {
    local: *const *const c_char,
    locals: usize,
    remote: *const *const c_char,
    remotes: usize,
    port: u16,
    channels: usize,
    max_size: usize,
    many: bool,
    tuned: bool,
}

// SAFETY: the signatures are those in `c/peer.h`.
unsafe extern "C" {
    fn peer_version() -> *const c_char;
    fn peer_settings(arguments: *const RawArguments, text: *mut c_char, room: usize);
    fn peer_receive(arguments: *const RawArguments, reason: *mut c_char, room: usize) -> c_int;
    fn peer_connect(arguments: *const RawArguments, reason: *mut c_char, room: usize) -> c_int;
    fn peer_send(
        channel: usize,
        state: *const c_void,
        length: usize,
        reason: *mut c_char,
        room: usize,
    ) -> c_int;
}

/// The one sender's acknowledgements: C code reaches them without a pointer of ours.
static ACKNOWLEDGEMENTS: OnceLock<Acknowledgements> = OnceLock::new();

/// The peer in C that is linked into this program.
#[derive(Debug)]
pub struct CPeer;

impl Peer for CPeer {
    type Receiver = ();
    type Sender = Self;

    fn version() -> String {
        // SAFETY: the function returns a text that stays.
        unsafe { text(peer_version()) }
    }

    fn settings(arguments: &Arguments) -> String {
        let mut written = [0; TEXT];
        with_raw(arguments, |raw| {
            // SAFETY: `raw` and `written` live through the call, and `written` has TEXT bytes.
            unsafe { peer_settings(raw, written.as_mut_ptr(), TEXT) }
        });
        from_buffer(&written)
    }

    fn receive(arguments: &Arguments) -> anyhow::Result<()> {
        with_raw(arguments, |raw| {
            // SAFETY: `raw` and the buffer live through the call; the peer copies what it keeps.
            call(|reason| unsafe { peer_receive(raw, reason, TEXT) })
        })
    }

    fn connect(arguments: &Arguments) -> anyhow::Result<Self> {
        ACKNOWLEDGEMENTS.get_or_init(|| Acknowledgements::new(arguments.channels));
        with_raw(arguments, |raw| {
            // SAFETY: as in `receive`.
            call(|reason| unsafe { peer_connect(raw, reason, TEXT) })
        })?;
        Ok(Self)
    }
}

impl Transfer for CPeer {
    fn transfer(&self, channel: usize, state: &Bytes) -> anyhow::Result<Timing> {
        let Some(acknowledgements) = ACKNOWLEDGEMENTS.get() else {
            bail!("not connected");
        };
        let digest = digest(state);
        let start = Instant::now();
        call(|reason| {
            // SAFETY: the state and the buffer live through the call, with the lengths given.
            unsafe { peer_send(channel, state.as_ptr().cast(), state.len(), reason, TEXT) }
        })?;
        let timeout = TIMEOUT.saturating_sub(start.elapsed());
        let end = acknowledgements.wait(channel, digest, timeout)?;
        Ok(Timing { start, end })
    }
}

/// The digest of a state, for a receiver in C.
///
/// # Safety
///
/// `state` points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn peer_digest(state: *const c_void, length: usize) -> u64 {
    if length == 0 {
        return digest(&[]);
    }
    // SAFETY: the caller's promise.
    digest(unsafe { slice::from_raw_parts(state.cast(), length) })
}

/// Says that a sender in C has read an acknowledgement.
#[unsafe(no_mangle)]
extern "C" fn peer_acknowledged(channel: usize, digest: u64) {
    if let Some(acknowledgements) = ACKNOWLEDGEMENTS.get() {
        acknowledgements.put(channel, digest);
    }
}

/// Gives the arguments in C's form.
fn with_raw<R>(arguments: &Arguments, work: impl FnOnce(&RawArguments) -> R) -> R {
    let texts = |addresses: &[std::net::Ipv4Addr]| -> Vec<CString> {
        let texts = addresses
            .iter()
            .map(|address| CString::new(address.to_string()));
        texts.map(Result::unwrap_or_default).collect()
    };
    let (local, remote) = (texts(&arguments.local), texts(&arguments.remote));
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
    let (local, remote) = (pointers(&local), pointers(&remote));
    work(&RawArguments {
        local: local.as_ptr(),
        locals: local.len(),
        remote: remote.as_ptr(),
        remotes: remote.len(),
        port: arguments.port,
        channels: arguments.channels,
        max_size: arguments.max_size,
        many: arguments.connections == Connections::Many,
        tuned: arguments.tuned,
    })
}

/// Calls a function that writes the reason for its failure.
fn call(work: impl FnOnce(*mut c_char) -> c_int) -> anyhow::Result<()> {
    let mut reason = [0; TEXT];
    match work(reason.as_mut_ptr()) {
        0 => Ok(()),
        _ => bail!("{}", from_buffer(&reason)),
    }
}

/// A text in a buffer that ends with a zero.
fn from_buffer(buffer: &[c_char; TEXT]) -> String {
    let bytes: Vec<u8> = buffer
        .iter()
        .map(|c| c.cast_unsigned())
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text of the peer.
///
/// # Safety
///
/// `pointer` points to a text that ends with a zero.
unsafe fn text(pointer: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}
