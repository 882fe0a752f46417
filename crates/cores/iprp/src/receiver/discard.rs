//! From a datagram to a packet for an application (iPRP, algorithms 5 and 6).

use super::processes::{Owner, Process};
use super::state::{GROUP_MEMORY, Pending, State};
use crate::counters::Discard;
use crate::event::{ReceiverEvent, SessionId};
use crate::flow::Flow;
use crate::header::{CLEAR, Header, Inner, TAG, decode_flow};
use crate::ind::Ind;
use crate::message::Subject;
use crate::window::Verdict;
use bumpless_base::Instant;
use bumpless_secure::Suite;
use core::net::SocketAddr;
use core::ops::Range;

/// What is to be handed on.
pub(crate) struct Opened {
    pub flow: Flow,
    pub session: SessionId,
    pub ind: Ind,
    /// Where in the datagram what it carries lies.
    pub payload: Range<usize>,
}

/// How a datagram came.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub now: Instant,
    pub on: Option<Ind>,
    pub from: SocketAddr,
}

impl<S: Suite> State<S> {
    /// Opens `datagram` and judges it.
    #[inline]
    pub(crate) fn handle_data(
        &mut self,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Result<Opened, Discard> {
        let header = Header::decode(datagram)?;
        if header.feedback {
            return Err(Discard::Malformed);
        }
        if datagram.len() < CLEAR + TAG + 1 {
            return Err(Discard::Truncated);
        }
        let (number, process) = self.find_key(arrival.now, &header)?;
        let (clear, body) = datagram
            .split_at_mut_checked(CLEAR)
            .ok_or(Discard::Truncated)?;
        let Inner { flow, probe, at } = self.open(process, number, &header, clear, body)?;
        let process = match process {
            Found::Known(place) => place,
            Found::Tried(owner) => self.adopt(arrival.now, owner, &header, &flow)?,
        };
        let end = (CLEAR + body.len()).saturating_sub(TAG);
        let session = self.judge(arrival, &header, number, process, &flow, probe)?;
        Ok(Opened {
            flow,
            session,
            ind: header.ind,
            payload: CLEAR + at..end,
        })
    }

    /// The number of the key of a packet, and whose it is.
    #[inline]
    fn find_key(&mut self, now: Instant, header: &Header) -> Result<(u32, Found), Discard> {
        let number = match header.group {
            true => 0,
            false => self
                .numbers
                .valid(now, header.key)
                .ok_or(Discard::UnknownKey)?,
        };
        match self.processes.find(header.tag) {
            Some(place) => {
                let process = self.processes.get(place).ok_or(Discard::UnknownKey)?;
                match (process.owner, header.group) {
                    (Owner::Source(_), false) | (Owner::Group(_), true) => {
                        Ok((number, Found::Known(place)))
                    }
                    _ => Err(Discard::UnknownKey),
                }
            }
            None => {
                let owner = self.stranger(now, header, number)?;
                match self.trials.spend(now) {
                    true => Ok((number, Found::Tried(owner))),
                    false => Err(Discard::Untried),
                }
            }
        }
    }

    /// Whose a packet of an unknown process could be.
    fn stranger(&self, now: Instant, header: &Header, number: u32) -> Result<Stranger, Discard> {
        if header.group {
            return match self.groups.opening(header.tag) {
                Some((address, _)) => Ok(Stranger::Member(address)),
                None => Err(Discard::UnknownKey),
            };
        }
        // Only what an earlier process of this receiver has given out: of its own, every process is known.
        let was_given = self.numbers.is_of_earlier_process(number) && now <= self.recovers_until;
        match was_given {
            true => Ok(Stranger::OfEarlierProcess),
            false => Err(Discard::UnknownKey),
        }
    }

    #[inline]
    fn open(
        &mut self,
        found: Found,
        number: u32,
        header: &Header,
        clear: &[u8],
        body: &mut [u8],
    ) -> Result<Inner, Discard> {
        let material = |owner| match owner {
            Owner::Group(_) => self.groups.opening(header.tag).map(|(_, key)| key),
            Owner::Source(_) => Some(self.root.material(number, header.tag)),
        };
        let is_open = match found {
            Found::Known(place) => {
                let process = self.processes.get_mut(place).ok_or(Discard::UnknownKey)?;
                let owner = process.owner;
                let key = process.key(number, || material(owner).unwrap_or_default());
                S::open(key, header.nonce(), clear, body)
            }
            Found::Tried(stranger) => {
                let material = match stranger {
                    Stranger::Member(address) => material(Owner::Group(address)),
                    Stranger::OfEarlierProcess => Some(self.root.material(number, header.tag)),
                };
                let material = material.ok_or(Discard::UnknownKey)?;
                let key = crate::keys::data_key::<S>(&material);
                S::open(&key, header.nonce(), clear, body)
            }
        };
        if !is_open {
            return Err(Discard::Forged);
        }
        let plain = body.len().checked_sub(TAG).and_then(|len| body.get(..len));
        decode_flow(plain.ok_or(Discard::Truncated)?, header.ipv6)
    }

    /// Makes a process of one whose packet has opened.
    #[cold]
    fn adopt(
        &mut self,
        now: Instant,
        stranger: Stranger,
        header: &Header,
        flow: &Flow,
    ) -> Result<usize, Discard> {
        let owner = match stranger {
            Stranger::Member(address) => Owner::Group(address),
            Stranger::OfEarlierProcess => match self.root.is_tag_of(header.tag, flow.source) {
                true => Owner::Source(flow.source),
                false => return Err(Discard::NotMonitored),
            },
        };
        let memory = match owner {
            Owner::Group(_) => GROUP_MEMORY,
            Owner::Source(_) => self.grace(),
        };
        let process = Process::new(header.tag, owner, now + memory);
        self.processes.add(process).ok_or(Discard::TableFull)
    }

    #[inline]
    fn judge(
        &mut self,
        arrival: Arrival,
        header: &Header,
        key_number: u32,
        process: usize,
        flow: &Flow,
        probe: bool,
    ) -> Result<SessionId, Discard> {
        let (place, slot) = match self.active.find_space(header.tag, header.space) {
            Some(found) => found,
            None => self.open_space(arrival.now, header, process, flow)?,
        };
        if header.group {
            self.processes.keep(process, arrival.now + GROUP_MEMORY);
        }
        let active = self.active.get(place).ok_or(Discard::TableFull)?;
        let Subject { source, scope } = active.subject;
        if source != flow.source || !scope.contains(flow) {
            return Err(Discard::NotMonitored);
        }
        let silent = active.silent;
        if silent && !self.is_monitored(&scope) {
            return Err(Discard::NotMonitored);
        }
        let verdict = self.active.judge(place, slot, header.number);
        if silent {
            self.hear_again(arrival.now, place, verdict)?;
        }
        // An application that has ended is not kept alive by probes.
        if !probe {
            self.count(arrival, header, place, verdict);
            self.see(arrival.now, place);
        }
        if header.ask {
            self.answer(arrival, header, key_number);
        }
        if probe {
            return Err(Discard::Probe);
        }
        match verdict {
            Verdict::First => {
                self.totals.delivered += 1;
                Ok(SessionId(place as u32))
            }
            Verdict::Duplicate => Err(Discard::Duplicate),
            Verdict::VeryLate => Err(Discard::VeryLate),
        }
    }

    /// A packet of a sender that has been silent. What is repeated wakes nobody.
    #[cold]
    fn hear_again(&mut self, now: Instant, place: usize, verdict: Verdict) -> Result<(), Discard> {
        match verdict {
            Verdict::First => {
                self.wake(now, place);
                self.begin(place);
                Ok(())
            }
            Verdict::Duplicate => Err(Discard::Duplicate),
            Verdict::VeryLate => Err(Discard::VeryLate),
        }
    }

    #[inline]
    fn count(&mut self, arrival: Arrival, header: &Header, place: usize, verdict: Verdict) {
        let sent_on = header.ind;
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        let arrivals = active.arrivals.entry(sent_on);
        match verdict {
            Verdict::First => arrivals.first += 1,
            Verdict::Duplicate => arrivals.duplicate += 1,
            Verdict::VeryLate => arrivals.very_late += 1,
        }
        let is_wrong = arrival.on.is_some_and(|on| on != sent_on);
        arrivals.wrong_network += u64::from(is_wrong);
        let bit = 1 << sent_on.get();
        let is_new = is_wrong && active.miswired & bit == 0;
        if let Some(on) = arrival.on {
            let (row, column) = (usize::from(sent_on.get()), usize::from(on.get()));
            self.totals.routes[row][column] += 1;
            if is_new {
                active.miswired |= bit;
                self.notify(ReceiverEvent::Miswired {
                    session: SessionId(place as u32),
                    sent_on,
                    arrived_on: on,
                });
            }
        }
    }

    /// Something of the sender at `place` has come: it is advertised to as long as that is so.
    #[inline]
    fn see(&mut self, now: Instant, place: usize) {
        if let Some(active) = self.active.get_mut(place) {
            active.last_seen = active.last_seen.max(now);
            active.cycle.calm(&self.timing);
        }
        if !self.active.is_scheduled(place) {
            self.resume(now, place);
        }
    }

    /// What was not advertised to while it paused is again. All members of a group hear it at once: each backs off anew.
    #[cold]
    fn resume(&mut self, now: Instant, place: usize) {
        let active = self.active.get(place);
        match active.is_some_and(|active| active.subject.scope.is_multicast()) {
            true => self.begin_cycle(now, place),
            false => self.active.reschedule(place),
        }
    }

    fn answer(&mut self, arrival: Arrival, header: &Header, key_number: u32) {
        let pending = Pending {
            tag: header.tag,
            space: header.space,
            key_number,
            asked: header.number,
            ind: header.ind,
            on: arrival.on,
            to: arrival.from,
        };
        if self.answers.push(pending).is_err() {
            self.totals.answers_lost += 1;
        }
    }
}

/// Whose key a packet names.
#[derive(Clone, Copy)]
enum Found {
    /// The process at this place.
    Known(usize),
    /// None that is known.
    Tried(Stranger),
}

#[derive(Clone, Copy)]
enum Stranger {
    /// A member of the group at this address.
    Member(core::net::IpAddr),
    /// A sender to which an earlier process of this receiver gave its key.
    OfEarlierProcess,
}
