//! A socket's filter that drops most of what strangers send before anybody is woken for it: classic BPF, which needs no privilege.

use std::net::{IpAddr, SocketAddr};

/// Offset of the network header in what a filter loads (linux/filter.h, SKF_NET_OFF).
const NETWORK: u32 = -0x10_0000_i32 as u32;
/// A random number in what a filter loads (SKF_AD_OFF + SKF_AD_RANDOM).
const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
/// A filter sees a datagram from its UDP header on, which begins with the sender's port (RFC 768).
const SOURCE_PORT: u32 = 0;
/// Sources in the headers of both families (RFC 791, RFC 8200).
const SOURCE_V4: u32 = NETWORK.wrapping_add(12);
const SOURCE_V6: u32 = NETWORK.wrapping_add(8);

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

const WHOLE: u32 = u32::MAX;
const NOTHING: u32 = 0;

/// Which datagrams pass a socket: all of those from known addresses, and of all others one in [`Screen::ONE_IN`], at random, so that who sends
/// them is still seen.
#[derive(Clone)]
pub struct Screen {
    program: Box<[libc::sock_filter]>,
}

impl Screen {
    /// Of so many strangers' datagrams one passes.
    pub const ONE_IN: u32 = 64;

    /// The screen that these addresses pass. Of a socket's two families only its own comes to it.
    pub fn new(known: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut program = Vec::new();
        for address in known {
            pass(&mut program, address);
        }
        program.push(step(LOAD_WORD, RANDOM));
        program.push(step(AND, Self::ONE_IN - 1));
        program.push(unless_equal(0, 1));
        program.push(step(RETURN, WHOLE));
        program.push(step(RETURN, NOTHING));
        Self {
            program: program.into(),
        }
    }

    /// The program as the kernel takes it.
    pub(crate) fn program(&self) -> &[libc::sock_filter] {
        &self.program
    }
}

/// A datagram from `address` passes; another one goes on behind this.
fn pass(program: &mut Vec<libc::sock_filter>, address: SocketAddr) {
    let words: Vec<(u32, u32)> = match address.ip() {
        IpAddr::V4(ip) => vec![(SOURCE_V4, ip.into())],
        IpAddr::V6(ip) => {
            let word = |at: u32| (u128::from(ip) >> (96 - 8 * at)) as u32;
            [0, 4, 8, 12].map(|at| (SOURCE_V6 + at, word(at))).into()
        }
    };
    // Two steps for each word; port and answer behind them.
    let mut left = words.len() as u8 * 2;
    for (offset, word) in words {
        left -= 2;
        program.push(step(LOAD_WORD, offset));
        program.push(unless_equal(word, left + 3));
    }
    program.push(step(LOAD_HALF, SOURCE_PORT));
    program.push(unless_equal(address.port().into(), 1));
    program.push(step(RETURN, WHOLE));
}

const fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Skips so many steps if what was loaded is not `k`.
const fn unless_equal(k: u32, skips: u8) -> libc::sock_filter {
    libc::sock_filter {
        jf: skips,
        ..step(IF_EQUAL, k)
    }
}
