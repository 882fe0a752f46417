//! One end of an association; `end.c` is its work.

use std::ffi::{CStr, CString, c_char};
use std::net::Ipv4Addr;
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use peer_echo::{ESTABLISHED, now};

/// How often whoever waits for the addresses looks.
const LOOK: Duration = Duration::from_millis(10);

/// A message that came, and when.
pub type Heard = (Vec<u8>, u64);

static HEARD: OnceLock<Sender<Heard>> = OnceLock::new();

unsafe extern "C" {
    fn end_serve(own: *const *const c_char, port: u16) -> *const c_char;
    fn end_connect(
        own: *const *const c_char,
        remote: *const *const c_char,
        port: u16,
        encapsulation: u16,
        heard: extern "C" fn(*const u8, usize),
    ) -> *const c_char;
    fn end_is_ready(ready: *mut bool) -> *const c_char;
    fn end_abort();
    fn end_send(message: *const u8, length: usize) -> *const c_char;
}

/// Listens at both addresses; `port` is SCTP's and UDP's.
pub fn serve(own: [Ipv4Addr; 2], port: u16) -> anyhow::Result<()> {
    let texts = texts(own)?;
    let own = [texts[0].as_ptr(), texts[1].as_ptr()];
    // SAFETY: both texts end with a zero and live through the call.
    done(unsafe { end_serve(own.as_ptr(), port) })
}

/// Connects from `own`, with a UDP port of its own, to `remote`; `heard` has what comes.
pub fn connect(
    (own, encapsulation): ([Ipv4Addr; 2], u16),
    (remote, port): ([Ipv4Addr; 2], u16),
    heard: Sender<Heard>,
) -> anyhow::Result<()> {
    if HEARD.set(heard).is_err() {
        bail!("one connection in a process");
    }
    let (own, remote) = (texts(own)?, texts(remote)?);
    let pointers = |texts: &[CString; 2]| [texts[0].as_ptr(), texts[1].as_ptr()];
    let (from, to) = (pointers(&own), pointers(&remote));
    // SAFETY: all texts end with a zero and live through the call; `hear` may be called from any thread.
    done(unsafe { end_connect(from.as_ptr(), to.as_ptr(), port, encapsulation, hear) })
}

/// Waits until both addresses of the server answer.
pub fn wait_until_ready() -> anyhow::Result<()> {
    let end = Instant::now() + ESTABLISHED;
    loop {
        let mut ready = false;
        // SAFETY: the association is connected, and the flag lives through the call.
        done(unsafe { end_is_ready(&raw mut ready) })?;
        if ready {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("one of both addresses does not answer within {ESTABLISHED:?}");
        }
        thread::sleep(LOOK);
    }
}

/// Ends the association, so that the server forgets it.
pub fn abort() {
    // SAFETY: the association is connected, and nothing is sent after this.
    unsafe { end_abort() }
}

/// Sends a message, or says that there is no room for it.
pub fn send(message: &[u8]) -> anyhow::Result<()> {
    // SAFETY: the message lives through the call and is as long as it is told.
    done(unsafe { end_send(message.as_ptr(), message.len()) })
}

extern "C" fn hear(message: *const u8, length: usize) {
    let at = now();
    // SAFETY: the library hands over a buffer of this length, which is freed after this call only.
    let message = unsafe { slice::from_raw_parts(message, length) };
    if let Some(heard) = HEARD.get() {
        let _ = heard.send((message.to_vec(), at));
    }
}

fn texts(addresses: [Ipv4Addr; 2]) -> anyhow::Result<[CString; 2]> {
    let [network, backup] = addresses.map(|it| CString::new(it.to_string()));
    Ok([network?, backup?])
}

/// `failed`: why not, or null.
fn done(failed: *const c_char) -> anyhow::Result<()> {
    if ptr::eq(failed, ptr::null()) {
        return Ok(());
    }
    // SAFETY: it is a text with a zero at its end, which nobody changes before the next call.
    let reason = unsafe { CStr::from_ptr(failed) };
    bail!("{}", reason.to_string_lossy())
}
