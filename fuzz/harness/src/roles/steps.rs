//! What one byte of the conversation can mean.

use super::{Datagram, End, GROUP, MS, Message, NETWORK, World};
use crate::input::Input;
use bumpless_base::{Duration, Epoch, LinkId, NodeId};
use bumpless_redundancy::{Event, Holding};
use bumpless_wire::{
    GroupEntry, GroupFlags, HeartbeatHeader, MAX_HEARTBEAT_LEN, Packet, Role, WitnessKind,
    WitnessRequest, encode_heartbeat, parse,
};

/// How long a state stays fresh.
pub(super) const EXPIRY: Duration = Duration::from_millis(60);

impl World {
    pub(super) fn step(&mut self, input: &mut Input<'_>) {
        match input.below(24) {
            0..=3 => {
                let (steps, faults) = (input.u8(), input.u8());
                let step = [MS, MS / 4][usize::from(steps >> 7)];
                self.live(1 + usize::from(steps & 31), step, faults);
            }
            4 | 5 => self.run_node(input.below(2)),
            6 => {
                let scale = input.below(16);
                self.now += 10_000 << scale;
                self.check();
            }
            7 | 8 => {
                if let Some(at) = self.pick(input) {
                    let datagram = self.network.remove(at);
                    self.arrive(datagram);
                }
            }
            9 => {
                if let Some(at) = self.pick(input) {
                    self.arrive(self.network[at].clone());
                }
            }
            10 => {
                if let Some(at) = self.pick(input) {
                    self.network.remove(at);
                }
            }
            11 => {
                for datagram in std::mem::take(&mut self.network) {
                    self.arrive(datagram);
                }
            }
            12 => self.network.clear(),
            13 => self.replay(input),
            14 => self.stop_or_start(input),
            15 => self.restart(input.below(2)),
            16 => self.change_witness(input),
            17 | 18 => self.command(input),
            19 => self.set_synced(input),
            20 => self.set_simplex(input),
            21 => self.observe_epoch(input),
            22 => self.forge(input),
            _ => self.deliver_any(input),
        }
    }

    fn pick(&self, input: &mut Input<'_>) -> Option<usize> {
        usize::from(input.u8()).checked_rem(self.network.len())
    }

    /// What the node's driver does about an event.
    pub(super) fn hear(&mut self, node: End, event: &Event) {
        match event {
            Event::RoleChanged { to, .. } if *to == Role::Primary => {
                self.account.primary_since[node] = self.now;
            }
            Event::HandOverBegun { .. } if self.nodes[node].obliging => self.finish(node),
            _ => {}
        }
    }

    /// The last state is safe and no output is written any more.
    fn finish(&mut self, node: End) {
        let now = self.nodes[node].clock.local(self.now);
        if let Some(core) = &mut self.nodes[node].core {
            core.set_simplex(GROUP, false, now);
            core.hand_over_ready(GROUP, now);
        }
    }

    /// Something that was sent comes again, however late.
    fn replay(&mut self, input: &mut Input<'_>) {
        let at = usize::from(input.u8()).checked_rem(self.recorded.len());
        if let Some(at) = at {
            self.arrive(self.recorded[at].clone());
        }
    }

    fn stop_or_start(&mut self, input: &mut Input<'_>) {
        let node = input.below(2);
        if self.nodes[node].core.is_some() {
            self.nodes[node].core = None;
            self.nodes[node].socket.clear();
        } else {
            self.start(node);
        }
    }

    fn restart(&mut self, node: End) {
        self.nodes[node].core = None;
        self.start(node);
    }

    fn change_witness(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let Some(at) = usize::from(choice >> 1).checked_rem(self.references.len()) else {
            return;
        };
        if choice & 1 == 0 && self.references[at].witness.is_some() {
            self.references[at].witness = None;
        } else {
            self.start_witness(at);
        }
    }

    fn command(&mut self, input: &mut Input<'_>) {
        let (node, what) = (input.below(2), input.below(4));
        let now = self.nodes[node].clock.local(self.now);
        self.nodes[node].obliging = what != 1;
        match (what, &mut self.nodes[node].core) {
            (0 | 1, Some(core)) => drop(core.command_switchover(GROUP, now)),
            (2, _) => self.finish(node),
            _ => {}
        }
        self.drain(node);
        self.check();
    }

    /// The primary's last state is safe at the backup.
    pub(super) fn exchange_states(&mut self, node: End) {
        let now = self.nodes[node].clock.local(self.now);
        if let Some(core) = &mut self.nodes[node].core {
            match core.role(GROUP) {
                Some(Role::Primary) => core.set_simplex(GROUP, false, now),
                Some(Role::Backup) => {
                    core.set_holding(GROUP, Holding::until(Some(now + EXPIRY)), now);
                }
                _ => {}
            }
        }
        self.drain(node);
        self.check();
    }

    fn set_synced(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let node = usize::from(choice & 1);
        let now = self.nodes[node].clock.local(self.now);
        let until = match choice >> 1 {
            0 => None,
            n => Some(now + Duration::from_millis(u64::from(n) * u64::from(n))),
        };
        if let Some(core) = &mut self.nodes[node].core {
            core.set_holding(GROUP, Holding::until(until), now);
        }
        self.drain(node);
        self.check();
    }

    fn set_simplex(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let node = usize::from(choice & 1);
        let now = self.nodes[node].clock.local(self.now);
        if let Some(core) = &mut self.nodes[node].core {
            core.set_simplex(GROUP, choice & 2 != 0, now);
        }
        self.drain(node);
        self.check();
    }

    /// A field device tells of an epoch in which outputs were written.
    fn observe_epoch(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let node = usize::from(choice & 1);
        let highest = self.account.highest_written().0;
        let seen = Epoch(highest.saturating_sub((choice >> 1).into()));
        let now = self.nodes[node].clock.local(self.now);
        if let Some(core) = &mut self.nodes[node].core {
            core.observe_epoch(GROUP, seen, now);
        }
        self.drain(node);
        self.check();
    }

    /// Bytes from anybody.
    fn deliver_any(&mut self, input: &mut Input<'_>) {
        let (choice, len) = (input.u8(), input.below(128));
        let to = usize::from(choice & 3) % (2 + self.references.len());
        let datagram = Datagram {
            from: usize::from(choice >> 2 & 3) % (2 + self.references.len()),
            to,
            link: choice >> 4,
            message: match choice & 0x80 {
                0 => Message::Bytes(input.take(len).to_vec()),
                _ => Message::Echo(input.u16()),
            },
        };
        if self.is_possible(&datagram) {
            self.arrive(datagram);
        }
    }

    /// Who has seen no datagram of a running session cannot make one of it.
    fn is_possible(&self, datagram: &Datagram) -> bool {
        let Message::Bytes(bytes) = &datagram.message else {
            return datagram.to < 2;
        };
        match parse(bytes) {
            Ok(Packet::Heartbeat(heartbeat)) => self.is_foreign(&heartbeat.header),
            Ok(Packet::WitnessRequest(request)) => !self.is_session(request.session),
            // Only an echoed token makes a reply count.
            Ok(Packet::WitnessReply(_)) => false,
            _ => true,
        }
    }

    fn is_session(&self, session: u64) -> bool {
        let recorded = self.recorded.iter();
        recorded
            .filter_map(session_of)
            .any(|known| known == session)
    }

    fn is_foreign(&self, header: &HeartbeatHeader) -> bool {
        !self.is_session(header.session) && header.echo_challenge == 0
    }

    /// A well-made datagram of somebody who knows the pair, but none of its running sessions.
    fn forge(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let to = usize::from(choice) % (2 + self.references.len());
        let bytes = if to < 2 {
            self.forged_heartbeat(to, input)
        } else {
            forged_request(input)
        };
        let from = if to < 2 {
            1 - to
        } else {
            usize::from(choice >> 4 & 1)
        };
        let link = choice >> 5 & 1;
        let datagram = Datagram {
            from,
            to,
            link,
            message: Message::Bytes(bytes),
        };
        if self.is_possible(&datagram) && self.network.len() < NETWORK {
            self.arrive(datagram);
        }
    }

    fn forged_heartbeat(&self, to: End, input: &mut Input<'_>) -> Vec<u8> {
        let header = HeartbeatHeader {
            pair: 9,
            fingerprint: if input.flag() { 77 } else { 78 },
            from: NodeId(1 - to as u8),
            to: NodeId(to as u8),
            link: LinkId(input.below(2) as u8),
            session: 1 + u64::from(input.u8()),
            challenge: input.u32().into(),
            echo_session: if input.flag() { self.session(to) } else { 0 },
            echo_challenge: 0,
            sent_at: (u64::from(input.u8()) << 40) + self.now,
            echo_sent_at: self.nodes[to].clock.local(self.now).as_nanos(),
            lease_echo: self.nodes[to].clock.local(self.now).as_nanos(),
            echo_delay: input.u16().into(),
            next: if input.flag() { 77 } else { 0 },
            full_echo: 0,
            padded: false,
        };
        let entry = GroupEntry {
            group: GROUP.0,
            role: input.one_of(&[Role::Starting, Role::Backup, Role::Primary, Role::Stopped]),
            epoch: Epoch(input.u32()),
            flags: flags(input.u8()),
            reference: input.u8(),
            reference_version: input.u16(),
            used: Epoch(input.u16().into()),
            token: input.u32(),
        };
        let mut out = [0; MAX_HEARTBEAT_LEN];
        let len = encode_heartbeat(&header, [entry], &mut out);
        out[..len].to_vec()
    }

    fn session(&self, node: End) -> u64 {
        self.nodes[node]
            .core
            .as_ref()
            .map_or(0, |core| core.session())
    }
}

fn session_of(datagram: &Datagram) -> Option<u64> {
    let Message::Bytes(bytes) = &datagram.message else {
        return None;
    };
    match parse(bytes) {
        Ok(Packet::Heartbeat(heartbeat)) => Some(heartbeat.session),
        Ok(Packet::WitnessRequest(request)) => Some(request.session),
        _ => None,
    }
}

fn flags(bits: u8) -> GroupFlags {
    let all = [
        GroupFlags::SYNCED,
        GroupFlags::GRANTING,
        GroupFlags::SWITCHOVER_REQUEST,
        GroupFlags::HANDING_OVER,
        GroupFlags::ELIGIBLE,
        GroupFlags::SIMPLEX,
        GroupFlags::DUPLICATE,
        GroupFlags::LAPSED,
        GroupFlags::NEWEST,
        GroupFlags::UNFIT,
        GroupFlags::HELD,
        GroupFlags::HELD_ALL,
    ];
    // Four more than there are bits come with the lowest four.
    let bits = u16::from(bits) | u16::from(bits & 15) << 8;
    all.into_iter()
        .filter(|flag| bits & flag.bits() != 0)
        .fold(GroupFlags::EMPTY, |set, flag| set.with(flag, true))
}

fn forged_request(input: &mut Input<'_>) -> Vec<u8> {
    let kinds = [
        WitnessKind::Renew,
        WitnessKind::Acquire,
        WitnessKind::Release,
        WitnessKind::Observe,
        WitnessKind::RenewSimplex,
        WitnessKind::AcquireLone,
        WitnessKind::Yield,
    ];
    let request = WitnessRequest {
        pair: 9 + u32::from(input.u8() / 128),
        group: GROUP.0,
        node: NodeId(input.u8() % 3),
        candidates: 2,
        session: 1 + u64::from(input.u8()),
        kind: input.one_of(&kinds),
        epoch: Epoch(input.u8().into()),
        lease_us: input.u16().into(),
        sent_at: input.u32().into(),
        token: input.u32().into(),
        witness_session: 0,
    };
    let mut out = [0; WitnessRequest::LEN];
    let len = request.encode(&mut out);
    out[..len].to_vec()
}
