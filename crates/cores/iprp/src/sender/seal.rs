//! Making copies (iPRP, algorithm 4).

use super::peer_base::{Sealing, Session};
use crate::flow::Flow;
use crate::header::{CLEAR, Header, PROBE, TAG, encode_flow};
use crate::ind::Ind;
use bumpless_base::Instant;
use bumpless_secure::Suite;
use core::net::IpAddr;

/// A copy of a packet: to be sent to the data port of `to`, from the host's address on the network `ind` and by its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    /// The network.
    pub ind: Ind,
    /// The receiver's address on it, or a group's.
    pub to: IpAddr,
    /// The payload of the UDP datagram.
    pub bytes: &'a [u8],
}

/// What one copy is made of.
#[derive(Clone)]
pub(crate) struct Content<'a> {
    pub flow: &'a Flow,
    pub payload: &'a [u8],
    /// Nothing is carried: only an answer is wanted.
    pub probe: bool,
    pub space: u32,
    pub number: u32,
    pub ask: bool,
}

/// Bytes of a copy of `content`.
#[inline]
pub(crate) fn copy_len(flow: &Flow, payload: usize, probe: bool) -> usize {
    let head = crate::header::flow_len(flow.protocol, flow.source.is_ipv6());
    CLEAR + usize::from(probe) + head + payload + TAG
}

/// Writes a copy of `content` for the network `ind` to the beginning of `out`; `None` if there is no room.
#[inline]
pub(crate) fn seal<'a, S: Suite>(
    sealing: &Sealing<S>,
    ind: Ind,
    content: &Content<'_>,
    out: &'a mut [u8],
) -> Option<&'a [u8]> {
    let Content { flow, payload, .. } = *content;
    let out = out.get_mut(..copy_len(flow, payload.len(), content.probe))?;
    let header = Header {
        ind,
        feedback: false,
        group: sealing.group,
        ask: content.ask,
        ipv6: flow.source.is_ipv6(),
        key: if sealing.group {
            0
        } else {
            (sealing.number & 15) as u8
        },
        tag: sealing.tag,
        space: content.space,
        number: content.number,
    };
    let (clear, rest) = out.split_at_mut_checked(CLEAR)?;
    clear.copy_from_slice(&header.encode());
    let (body, tag) = rest.split_at_mut_checked(rest.len().checked_sub(TAG)?)?;
    let mark: &[u8] = if content.probe { &[PROBE] } else { &[] };
    let (head, len) = encode_flow(flow);
    let mut at = 0;
    for part in [mark, head.get(..len)?, payload] {
        body.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    tag.copy_from_slice(&S::seal(&sealing.key, header.nonce(), clear, body));
    Some(out)
}

impl<S: Suite> Session<S> {
    /// Copies of `content` for the path at `at` in `out`.
    #[inline]
    pub(crate) fn seal_on<'a>(
        &self,
        at: usize,
        content: &Content<'_>,
        out: &'a mut [u8],
    ) -> Option<Copy<'a>> {
        let path = self.path_at(at)?;
        let bytes = seal(&self.sealing, path.ind, content, out)?;
        Some(Copy {
            ind: path.ind,
            to: path.to,
            bytes,
        })
    }
}

/// Notes that a copy has left on the path at `at`; `again`: one of a packet that had left before.
#[inline]
pub(super) fn note_sent<S: Suite>(
    session: &mut Session<S>,
    at: usize,
    now: Instant,
    content: &Content<'_>,
    again: bool,
) {
    let Some(path) = session.path_mut(at) else {
        return;
    };
    path.departures.sent += 1;
    path.departures.again += u64::from(again);
    if content.ask {
        match again {
            false => path.ask(now, content.number),
            true => path.ask_again(content.number),
        }
    }
}
