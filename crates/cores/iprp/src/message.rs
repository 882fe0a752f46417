//! Bytes of control messages, which travel on a secure channel (`spec/iprp.md`, I-20 to I-25).

use crate::flow::{Scope, Side};
use crate::header::VERSION;
use crate::ind::{Ind, Network, Networks};
use core::fmt;
use core::net::IpAddr;
use zeroize::Zeroizing;

/// Longest control message, bytes.
pub const MAX_MESSAGE: usize = 256;

const ADVERTISEMENT: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
const WITHDRAWAL: u8 = 3;

/// Why a control message has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// It is of another version; its number.
    Version(u8),
    /// It is too short, too long, or a field has a value that its clause forbids.
    Malformed,
    /// It is one that this end sends itself.
    WrongKind,
    /// It speaks for an address that is not that of whoever sent it.
    NotTheirs,
    /// It answers nothing that was asked: no such sender is known, or it was forgotten.
    Unknown,
    /// All places are taken.
    TableFull,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "a message of version {version}, this is version {VERSION}: run the same release at both ends"
            ),
            Self::Malformed => f.write_str("a message that does not keep to its format"),
            Self::WrongKind => f.write_str("a message that this end sends itself"),
            Self::NotTheirs => f.write_str("a message for an address that is not its sender's"),
            Self::Unknown => f.write_str("an answer to nothing that was asked"),
            Self::TableFull => f.write_str("no place for one session more: raise the limit"),
        }
    }
}

impl core::error::Error for MessageError {}

/// The group that a control message is about; `None` for one between two hosts, and for what is none.
///
/// A sender's acknowledgement of such a message goes to all members, so that they need not advertise as well (iPRP V-F).
pub fn group_of_message(message: &[u8]) -> Option<IpAddr> {
    let (Message::Advertisement { subject, .. }
    | Message::Acknowledgement { subject, .. }
    | Message::Withdrawal { subject }) = Message::decode(message).ok()?;
    Some(subject.scope.destination).filter(IpAddr::is_multicast)
}

/// Whose packets, and which: what every message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub source: IpAddr,
    pub scope: Scope,
}

/// A key for one process of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The process, as it has called itself.
    pub process: u64,
    /// What the sender puts into each packet's header.
    pub tag: u64,
    /// The key's number.
    pub number: u32,
    /// What keys are derived from.
    pub material: Zeroizing<[u8; 32]>,
}

/// What is said on the secure channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A receiver: here I am (iPRP_CAP).
    Advertisement {
        subject: Subject,
        /// `T_CAP` in milliseconds.
        every_ms: u32,
        /// None to a group, and to a sender whose process is not known yet.
        offer: Option<Offer>,
        networks: Networks,
    },
    /// A sender: I know (iPRP_ACK).
    Acknowledgement {
        subject: Subject,
        /// Of the sender; another one at each start, never zero.
        process: u64,
        /// The session, 0 if there is none.
        space: u32,
        networks: Networks,
    },
    /// A receiver: packets of this come to me as they are.
    Withdrawal { subject: Subject },
}

impl Message {
    /// Its bytes in `out`; how many.
    pub(crate) fn encode(&self, out: &mut [u8; MAX_MESSAGE]) -> usize {
        let mut writer = Writer { out, at: 0 };
        writer.put(&[VERSION]);
        match self {
            Self::Advertisement {
                subject,
                every_ms,
                offer,
                networks,
            } => {
                writer.put(&[ADVERTISEMENT]);
                writer.subject(subject);
                writer.put(&every_ms.to_be_bytes());
                writer.put(&[u8::from(offer.is_some())]);
                if let Some(offer) = offer {
                    writer.put(&offer.process.to_be_bytes());
                    writer.put(&offer.tag.to_be_bytes());
                    writer.put(&offer.number.to_be_bytes());
                    writer.put(&*offer.material);
                }
                writer.networks(networks);
            }
            Self::Acknowledgement {
                subject,
                process,
                space,
                networks,
            } => {
                writer.put(&[ACKNOWLEDGEMENT]);
                writer.subject(subject);
                writer.put(&process.to_be_bytes());
                writer.put(&space.to_be_bytes());
                writer.networks(networks);
            }
            Self::Withdrawal { subject } => {
                writer.put(&[WITHDRAWAL]);
                writer.subject(subject);
            }
        }
        writer.at
    }

    /// What `bytes` say.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let kind = reader.u8()?;
        let subject = reader.subject()?;
        let message = match kind {
            ADVERTISEMENT => Self::Advertisement {
                subject,
                every_ms: reader.u32()?,
                offer: reader.offer()?,
                networks: reader.networks()?,
            },
            ACKNOWLEDGEMENT => Self::Acknowledgement {
                subject,
                process: reader.u64()?,
                space: reader.u32()?,
                networks: reader.networks()?,
            },
            WITHDRAWAL => Self::Withdrawal { subject },
            _ => return Err(MessageError::Malformed),
        };
        match (reader.0.is_empty(), message.is_sound()) {
            (true, true) => Ok(message),
            _ => Err(MessageError::Malformed),
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Self::Advertisement {
                subject,
                every_ms,
                offer,
                ..
            } => {
                let is_sound = offer.as_ref().is_none_or(|offer| offer.process != 0);
                *every_ms > 0 && is_sound && !(subject.scope.is_multicast() && offer.is_some())
            }
            Self::Acknowledgement { process, .. } => *process != 0,
            Self::Withdrawal { .. } => true,
        }
    }
}

struct Writer<'a> {
    out: &'a mut [u8; MAX_MESSAGE],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        // The longest message has 240 bytes: there is always room.
        if let Some(place) = self.out.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.put(&[4]);
                self.put(&address.octets());
            }
            IpAddr::V6(address) => {
                self.put(&[6]);
                self.put(&address.octets());
            }
        }
    }

    fn subject(&mut self, subject: &Subject) {
        let scope = &subject.scope;
        let side = match scope.side {
            Side::Destination => 0,
            Side::Source => 1,
        };
        self.put(&[scope.protocol, side]);
        self.put(&scope.port.to_be_bytes());
        self.address(scope.destination);
        self.address(subject.source);
    }

    fn networks(&mut self, networks: &Networks) {
        self.put(&[networks.len() as u8]);
        for network in networks.iter() {
            self.put(&[network.ind.get()]);
            self.address(network.address);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let split = self.0.split_first_chunk();
        let (bytes, rest) = split.ok_or(MessageError::Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, MessageError> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        self.take().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Result<IpAddr, MessageError> {
        match self.u8()? {
            4 => self.take::<4>().map(IpAddr::from),
            6 => self.take::<16>().map(IpAddr::from),
            _ => Err(MessageError::Malformed),
        }
    }

    fn subject(&mut self) -> Result<Subject, MessageError> {
        let protocol = self.u8()?;
        let side = match self.u8()? {
            0 => Side::Destination,
            1 => Side::Source,
            _ => return Err(MessageError::Malformed),
        };
        let port = self.u16()?;
        let destination = self.address()?;
        let source = self.address()?;
        if source.is_ipv4() != destination.is_ipv4() || source.is_multicast() {
            return Err(MessageError::Malformed);
        }
        let scope = Scope {
            protocol,
            side,
            port,
            destination,
        };
        Ok(Subject { source, scope })
    }

    fn offer(&mut self) -> Result<Option<Offer>, MessageError> {
        match self.u8()? {
            0 => Ok(None),
            1 => Ok(Some(Offer {
                process: self.u64()?,
                tag: self.u64()?,
                number: self.u32()?,
                material: Zeroizing::new(self.take()?),
            })),
            _ => Err(MessageError::Malformed),
        }
    }

    fn networks(&mut self) -> Result<Networks, MessageError> {
        let mut networks = Networks::default();
        for _ in 0..self.u8()? {
            let ind = Ind::new(self.u8()?).ok_or(MessageError::Malformed)?;
            let address = self.address()?;
            let network = Network { ind, address };
            networks
                .push(network)
                .map_err(|_| MessageError::Malformed)?;
        }
        Ok(networks)
    }
}

#[cfg(test)]
mod tests;
