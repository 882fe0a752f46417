//! What program and guard say to each other: one packet each way over a Unix socket that keeps packets apart (SOCK_SEQPACKET), numbers as
//! this machine has them. The program's socket goes with the request (SCM_RIGHTS); `c/bumpless_guard.c` of the libraries says the same.

use std::time::Duration;

/// Where the guard listens if its file names no other place.
pub const USUAL_SOCKET: &str = "/run/bumpless-guard.sock";

/// Version of these messages.
pub const VERSION: u32 = 1;
/// Bytes of a request.
pub const REQUEST_LEN: usize = 32;
/// Bytes of a reply.
pub const REPLY_LEN: usize = 512;

/// What messages begin with: "BGRD" where the lowest byte is first.
const MAGIC: u32 = 0x4452_4742;
/// Where a reply's sentence begins.
const SENTENCE: usize = 16;

/// On which terms packets of a socket are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// So many packets in a period at most, on each guarded interface; above zero.
    pub capacity: u32,
    /// After which the capacity is whole again: 1 ms to 60 s.
    pub period: Duration,
    /// How urgent, up to what the guard's file permits. It orders queues of drivers that have some; on Linux it has no effect yet (V-57).
    pub priority: u8,
}

/// Why a guard refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The messages of the two have different versions, or it is no such message.
    Version = 1,
    /// Capacity or period are none that there can be.
    Terms = 2,
    /// It is no socket of UDP or TCP that is bound on this host.
    Socket = 3,
    /// Another flow has its port.
    Taken = 4,
    /// Its packets would take more of the processor than is permitted.
    Budget = 5,
    /// The priority is above the permitted one.
    Priority = 6,
    /// As many are registered as may be.
    Full = 7,
    /// The kernel has no room for it.
    Kernel = 8,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Version,
        Self::Terms,
        Self::Socket,
        Self::Taken,
        Self::Budget,
        Self::Priority,
        Self::Full,
        Self::Kernel,
    ];

    /// Its name, as status has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Terms => "terms",
            Self::Socket => "socket",
            Self::Taken => "taken",
            Self::Budget => "budget",
            Self::Priority => "priority",
            Self::Full => "full",
            Self::Kernel => "kernel",
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_ne_bytes)
}

/// The request for these terms.
pub fn request(terms: &Terms) -> [u8; REQUEST_LEN] {
    let mut bytes = [0; REQUEST_LEN];
    put(&mut bytes, 0, MAGIC.to_ne_bytes());
    put(&mut bytes, 4, VERSION.to_ne_bytes());
    // Longer than a guard takes in any case.
    let period = u64::try_from(terms.period.as_nanos()).unwrap_or(u64::MAX);
    put(&mut bytes, 8, period.to_ne_bytes());
    put(&mut bytes, 16, terms.capacity.to_ne_bytes());
    put(&mut bytes, 20, u32::from(terms.priority).to_ne_bytes());
    bytes
}

/// The terms that a request has.
///
/// # Errors
/// Why it cannot be one, for the program.
pub fn read_request(bytes: &[u8]) -> Result<Terms, String> {
    let (Some(MAGIC), Some(version)) = (word(bytes, 0), word(bytes, 4)) else {
        return Err("this is no request of a program to a guard".to_owned());
    };
    if version != VERSION {
        return Err(format!(
            "the guard speaks version {VERSION} and this program version {version}: build it with the library of the guard's release"
        ));
    }
    let terms = || {
        Some(Terms {
            period: Duration::from_nanos(u64::from_ne_bytes(take(bytes, 8)?)),
            capacity: word(bytes, 16)?,
            // One above all that a guard permits is told so.
            priority: u8::try_from(word(bytes, 20)?).unwrap_or(u8::MAX),
        })
    };
    match (terms(), bytes.get(24..)) {
        (Some(terms), Some([0, 0, 0, 0, 0, 0, 0, 0])) => Ok(terms),
        _ => Err("this request does not have the length or the zeros of its version".to_owned()),
    }
}

/// A reply: done, or why not, and in which words.
pub fn reply(result: Result<(), (Refusal, &str)>) -> [u8; REPLY_LEN] {
    let mut bytes = [0; REPLY_LEN];
    let (code, sentence) = match result {
        Ok(()) => (0, ""),
        Err((refusal, sentence)) => (refusal as u32, sentence),
    };
    // Whole characters only; a zero behind them, for C.
    let most = REPLY_LEN - SENTENCE - 1;
    let ends = sentence.char_indices().map(|(at, it)| at + it.len_utf8());
    let end = ends.take_while(|&end| end <= most).last().unwrap_or(0);
    put(&mut bytes, 0, MAGIC.to_ne_bytes());
    put(&mut bytes, 4, VERSION.to_ne_bytes());
    put(&mut bytes, 8, code.to_ne_bytes());
    put(&mut bytes, 12, (end as u32).to_ne_bytes());
    bytes[SENTENCE..SENTENCE + end].copy_from_slice(&sentence.as_bytes()[..end]);
    bytes
}

/// What a reply says; `None`: it is none of this version.
pub fn read_reply(bytes: &[u8]) -> Option<Result<(), (Refusal, String)>> {
    if (word(bytes, 0)?, word(bytes, 4)?) != (MAGIC, VERSION) || bytes.len() != REPLY_LEN {
        return None;
    }
    let code = word(bytes, 8)?;
    if code == 0 {
        return Some(Ok(()));
    }
    let refusal = Refusal::ALL.into_iter().find(|&it| it as u32 == code)?;
    let len = usize::try_from(word(bytes, 12)?).ok()?;
    let sentence = bytes.get(SENTENCE..SENTENCE.checked_add(len)?)?;
    Some(Err((
        refusal,
        String::from_utf8_lossy(sentence).into_owned(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        capacity: 7,
        period: Duration::from_millis(100),
        priority: 3,
    };

    #[test]
    fn what_is_said_is_understood_and_what_is_cut_or_of_another_version_is_not() {
        let said = request(&TERMS);
        assert_eq!(read_request(&said), Ok(TERMS));
        for len in 0..said.len() {
            assert!(read_request(&said[..len]).is_err(), "{len}");
        }
        assert!(read_request(&[&said[..], &[0]].concat()).is_err());
        let mut other = said;
        other[4] = 9;
        let told = read_request(&other).unwrap_err();
        assert!(
            told.contains("version 1") && told.contains("version 9"),
            "{told}"
        );
        let mut later = said;
        later[31] = 1;
        assert!(read_request(&later).is_err());
    }

    #[test]
    fn a_reply_brings_its_cause_and_as_much_of_the_sentence_as_there_is_room_for() {
        assert_eq!(read_reply(&reply(Ok(()))), Some(Ok(())));
        for refusal in Refusal::ALL {
            let read = read_reply(&reply(Err((refusal, "so"))));
            assert_eq!(read, Some(Err((refusal, "so".to_owned()))));
        }
        let long = "ä".repeat(REPLY_LEN);
        let told = read_reply(&reply(Err((Refusal::Full, &long))));
        let Some(Err((_, told))) = told else {
            panic!("{told:?}")
        };
        assert_eq!(told, "ä".repeat((REPLY_LEN - SENTENCE - 1) / 2));
        assert_eq!(read_reply(&reply(Ok(()))[1..]), None);
        let mut lying = reply(Err((Refusal::Full, "so")));
        lying[12..16].fill(0xff);
        assert_eq!(read_reply(&lying), None);
    }
}
