//! Messages of OPC UA over TCP (OPC 10000-6, 7.1.2 and 6.7.2) as far as they come in the clear, before a client has shown
//! who it is.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of type, chunk and size.
const HEADER: usize = 8;
/// No message that comes in the clear is longer: an OpenSecureChannel request with a long certificate.
pub const MESSAGE_MAX: usize = 16 << 10;

/// What the first bytes of a request's body name, without a namespace: its encoding's numeric identifier (OPC 10000-6, A).
pub const FIND_SERVERS: u32 = 422;
/// As [`FIND_SERVERS`].
pub const GET_ENDPOINTS: u32 = 428;

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hello, the first one.
    Hello,
    /// OpenSecureChannel: the policy's URI, and the sender's certificate.
    Open {
        /// Security policy.
        policy: String,
        /// In DER; empty without security.
        certificate: Vec<u8>,
    },
    /// A request in the clear, by the identifier of its encoding.
    Request(u32),
    /// The end of the channel.
    Close,
}

/// A message that is no message.
#[derive(Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Whoever is there has closed the connection between messages, or has been cut off in one.
    Ended,
    /// It is something else.
    Garbage,
}

/// Reads the next message: what it is, and all its bytes.
///
/// # Errors
/// See [`Malformed`].
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<(Kind, Vec<u8>), Malformed> {
    let mut message = vec![0; HEADER];
    let read = from.read_exact(&mut message).await;
    read.map_err(|_| Malformed::Ended)?;
    // What is not one of these is not waited for.
    let known = [*b"HEL", *b"OPN", *b"MSG", *b"CLO"]
        .iter()
        .any(|it| message.starts_with(it));
    let size = u32::from_le_bytes([message[4], message[5], message[6], message[7]]) as usize;
    if !known || message[3] != b'F' || !(HEADER..=MESSAGE_MAX).contains(&size) {
        return Err(Malformed::Garbage);
    }
    message.resize(size, 0);
    let read = from.read_exact(&mut message[HEADER..]).await;
    read.map_err(|_| Malformed::Ended)?;
    let kind = kind(&message).ok_or(Malformed::Garbage)?;
    Ok((kind, message))
}

fn kind(message: &[u8]) -> Option<Kind> {
    let mut body = Body(message.get(HEADER..)?);
    Some(match &message[..3] {
        b"HEL" => Kind::Hello,
        b"OPN" => {
            body.take(4)?;
            let policy = body.string()?;
            Kind::Open {
                policy: String::from_utf8(policy.to_vec()).ok()?,
                certificate: body.string()?.to_vec(),
            }
        }
        b"MSG" => {
            // Channel, token, sequence number, request.
            body.take(16)?;
            Kind::Request(body.numeric_identifier()?)
        }
        _ => Kind::Close,
    })
}

struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Length and bytes; a length of -1 is an empty one.
    fn string(&mut self) -> Option<&'a [u8]> {
        let length = i32::from_le_bytes(self.take(4)?.try_into().ok()?);
        match length {
            -1 => Some(&[]),
            _ => self.take(usize::try_from(length).ok()?),
        }
    }

    /// A NodeId with a number, without a namespace (OPC 10000-6, 5.2.2.9).
    fn numeric_identifier(&mut self) -> Option<u32> {
        match self.take(1)?[0] {
            0 => Some(self.take(1)?[0].into()),
            1 => match self.take(3)? {
                [0, low, high] => Some(u16::from_le_bytes([*low, *high]).into()),
                _ => None,
            },
            2 => match self.take(6)? {
                [0, 0, number @ ..] => Some(u32::from_le_bytes(number.try_into().ok()?)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// An Error message (OPC 10000-6, 7.1.2.5).
pub fn error(code: u32, reason: &str) -> Vec<u8> {
    let mut message = b"ERRF".to_vec();
    message.extend((16 + reason.len() as u32).to_le_bytes());
    message.extend(code.to_le_bytes());
    message.extend((reason.len() as u32).to_le_bytes());
    message.extend(reason.as_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(head: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let size = (HEADER + body.len()) as u32;
        [&head[..], &size.to_le_bytes(), body].concat()
    }

    fn text(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes(), text].concat()
    }

    fn open(policy: &[u8], certificate: &[u8]) -> Vec<u8> {
        let body = [&[0; 4][..], &text(policy), &text(certificate), &[0xff; 4]].concat();
        message(b"OPNF", &body)
    }

    async fn read_all(bytes: &[u8]) -> Result<Kind, Malformed> {
        let mut from = bytes;
        read(&mut from).await.map(|(kind, message)| {
            assert_eq!(message, bytes);
            kind
        })
    }

    #[tokio::test]
    async fn what_comes_in_the_clear_is_understood() {
        assert_eq!(read_all(&message(b"HELF", &[1; 40])).await, Ok(Kind::Hello));
        assert_eq!(read_all(&message(b"CLOF", &[1; 20])).await, Ok(Kind::Close));
        let kind = read_all(&open(b"http://policy", b"der")).await.unwrap();
        let expected = Kind::Open {
            policy: "http://policy".into(),
            certificate: b"der".to_vec(),
        };
        assert_eq!(kind, expected);
        for identifier in [&[0, 200][..], &[1, 0, 200, 0], &[2, 0, 0, 200, 0, 0, 0]] {
            let body = [&[7; 16][..], identifier, &[9; 5]].concat();
            let request = read_all(&message(b"MSGF", &body)).await;
            assert_eq!(request, Ok(Kind::Request(200)), "{identifier:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_message_is_garbage_or_has_ended() {
        let long = [&b"HELF"[..], &(MESSAGE_MAX as u32 + 1).to_le_bytes()].concat();
        let short = [&b"HELF"[..], &7_u32.to_le_bytes()].concat();
        let other_namespace = message(b"MSGF", &[&[0; 16][..], &[1, 3, 200, 0]].concat());
        let cut = message(b"OPNF", &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f]);
        let negative = message(b"OPNF", &[0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        for garbage in [
            &b"GET / HTTP/1.1\r\n"[..],
            &[0; 64],
            &long,
            &short,
            &message(b"HELC", &[]),
            &message(b"MSGC", &[0; 30]),
            &message(b"MSGF", &[0; 3]),
            &other_namespace,
            &cut,
            &negative,
            &open(&[0xff, 0xfe], b""),
        ] {
            assert_eq!(
                read_all(garbage).await,
                Err(Malformed::Garbage),
                "{garbage:?}"
            );
        }
        let whole = open(b"http://policy", b"der");
        for end in 0..whole.len() {
            assert_eq!(
                read_all(&whole[..end]).await,
                Err(Malformed::Ended),
                "{end}"
            );
        }
    }

    #[test]
    fn an_error_says_code_and_reason() {
        assert_eq!(
            error(0x8013_0000, "no"),
            b"ERRF\x12\0\0\0\0\0\x13\x80\x02\0\0\0no"
        );
    }
}
