//! Faults of the script: how they begin, act and end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::sync_channel;

use bumpless_base::NodeId;
use bumpless_controller::ProgramFaultKind;
use bumpless_node::data_plane::Command;
use bumpless_redundancy::GroupId;

use super::{RECEIVE_BUFFER, World};
use crate::network::Parcel;
use crate::queue::What;
use crate::readable::{before_message, message_in};
use crate::script::{End, Fault, Junk, Lie};
use crate::trace::Happening;
use crate::variants::Configuration;

/// Where the version is in envelopes and in messages (`spec/wire.md`).
const VERSION: std::ops::Range<usize> = 2..4;

/// Where noise comes from.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 66)), 6666);

impl World {
    pub(super) fn fault_begins(&mut self, at: usize) {
        let timed = self.script[at];
        if !timed.fault.must_do_no_harm() {
            let felt = timed.until.saturating_add(timed.fault.outlasts_by());
            match timed.fault {
                Fault::Switchover { .. } => self.checks.ordered(felt),
                fault => self.checks.faults_end(fault.network(), felt),
            }
            if timed.fault.reconfigures().is_none() {
                self.checks.another_fault(felt);
            }
        }
        self.tell(Happening::FaultBegins {
            fault: at as u32,
            what: timed.fault,
        });
        if timed.until > timed.at {
            let place = self.active.partition_point(|&other| other < at);
            self.active.insert(place, at);
            let ends = What::FaultEnds { fault: at as u32 };
            self.queue.push(timed.until, ends);
        }
        match timed.fault {
            Fault::Path { .. } => self.refresh_paths(),
            Fault::Junk { .. } => self.fault_acts(at),
            Fault::Keys { .. } => self.keys_act(at),
            Fault::Flood { .. } => {
                self.checks.flood(timed.at, timed.until);
                self.flood_acts(at);
            }
            Fault::Pause { node, in_turn } => self.pause(node, in_turn, timed.until),
            Fault::Crash { node, reboot } => {
                self.kill(node);
                if reboot {
                    let now = self.now();
                    self.hosts[node].reboot(now);
                }
            }
            Fault::OldConfiguration { node } | Fault::WrongConfiguration { node, .. } => {
                self.run_anew(node);
            }
            Fault::Apply { node, number } => self.apply(node, number),
            Fault::CrashInChange { node, steps } => self.arm(node, steps),
            Fault::Witness { reference } => {
                self.witnesses[reference].witness = None;
            }
            Fault::Switchover { node, group } => self.order_switchover(node, group),
            Fault::Clock { end, ppb, ahead } => self.set_rate(end, ppb, ahead),
            Fault::Buffer { node, bytes } => self.set_capacity(node, bytes),
            // What it says is looked up when it is asked.
            Fault::Liar { .. } => {}
            Fault::Unreachable { .. }
            | Fault::Slow { .. }
            | Fault::Device { .. }
            | Fault::Program { .. }
            | Fault::SlowApplication { .. } => self.refresh_hosts(),
        }
        if timed.until == timed.at && timed.fault.restarts() {
            self.fault_ends(at);
        }
    }

    pub(super) fn fault_ends(&mut self, at: usize) {
        let timed = self.script[at];
        self.active.retain(|&other| other != at);
        self.tell(Happening::FaultEnds {
            fault: at as u32,
            what: timed.fault,
        });
        match timed.fault {
            Fault::Path { .. } => self.refresh_paths(),
            Fault::Crash { node, .. }
                if !self.is_held_down(node) && self.hosts[node].process.is_none() =>
            {
                self.restart(node);
            }
            Fault::OldConfiguration { node } | Fault::WrongConfiguration { node, .. } => {
                self.run_anew(node);
            }
            Fault::CrashInChange { node, .. } => self.disarm(node),
            Fault::Witness { reference } if !self.is_witness_held_down(reference) => {
                self.start_witness(reference);
            }
            Fault::Clock { end, .. } => {
                let sound = match end {
                    End::Node(node) => self.hosts[node].sound_rate,
                    End::Reference(reference) => self.witnesses[reference].sound_rate,
                };
                self.set_rate(end, sound, 0);
            }
            Fault::Buffer { node, .. } => self.set_capacity(node, RECEIVE_BUFFER),
            Fault::Unreachable { .. }
            | Fault::Slow { .. }
            | Fault::Program { .. }
            | Fault::SlowApplication { .. } => self.refresh_hosts(),
            _ => {}
        }
    }

    fn active_faults(&self) -> impl Iterator<Item = &Fault> {
        self.active.iter().map(|&at| &self.script[at].fault)
    }

    pub(super) fn is_held_down(&self, node: usize) -> bool {
        self.active_faults()
            .any(|fault| matches!(fault, Fault::Crash { node: n, .. } if *n == node))
    }

    /// Ends the process of `node` and starts it with what is its configuration at present.
    fn run_anew(&mut self, node: usize) {
        self.kill(node);
        if !self.is_held_down(node) {
            self.restart(node);
        }
    }

    /// With what a process of `node` that starts at present begins.
    pub(super) fn configuration_of(&self, node: usize) -> Configuration {
        let reconfigures = |fault: &&Fault| fault.reconfigures() == Some(node);
        match self.active_faults().find(reconfigures) {
            Some(Fault::WrongConfiguration { what, .. }) => Configuration::Wrong(*what),
            Some(_) => Configuration::Old,
            None => Configuration::Right,
        }
    }

    fn is_witness_held_down(&self, reference: usize) -> bool {
        self.active_faults()
            .any(|fault| matches!(fault, Fault::Witness { reference: r } if *r == reference))
    }

    fn refresh_paths(&mut self) {
        let active = self.active.iter().map(|&at| &self.script[at]);
        self.network.set_faults(active);
    }

    /// Brings interfaces and speeds of all nodes in line with the active faults.
    pub(super) fn refresh_hosts(&mut self) {
        let active: Vec<Fault> = self.active_faults().copied().collect();
        for node in 0..self.hosts.len() {
            for network in 0..self.network.count() {
                let down = active.iter().any(|fault| {
                    matches!(fault, Fault::Unreachable { node: n, network: w } if (*n, *w) == (node, network))
                });
                self.exchange.get().mailbox(node, network).unreachable = down;
            }
            let slow = active.iter().filter_map(|fault| match fault {
                Fault::Slow { node: n, by } if *n == node => Some(*by),
                _ => None,
            });
            self.hosts[node].slow = slow.max().unwrap_or_default();
            self.refresh_applications(node, &active);
        }
    }

    fn refresh_applications(&mut self, node: usize, active: &[Fault]) {
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        for app in process.apps.iter_mut().flatten() {
            let slow = active.iter().filter_map(|fault| match fault {
                Fault::SlowApplication {
                    node: n,
                    application,
                    by,
                    jumps,
                } if (*n, *application) == (node, app.index) => Some((*by, *jumps)),
                _ => None,
            });
            (app.slow, app.jumps) = slow.max().unwrap_or_default();
            let place = (node, app.index);
            app.failing.set(active.iter().find_map(|fault| match fault {
                Fault::Program {
                    node,
                    application,
                    starved,
                } if (*node, *application) == place => Some(match starved {
                    true => ProgramFaultKind::Starved,
                    false => ProgramFaultKind::Trap,
                }),
                _ => None,
            }));
        }
    }

    /// Stops the process of `node`, if it runs.
    fn pause(&mut self, node: usize, in_turn: bool, until: u64) {
        let host = &mut self.hosts[node];
        if host.process.is_none() {
            return;
        }
        if in_turn {
            host.stalled_until = host.stalled_until.max(until);
            self.turn_now(node);
        } else {
            host.paused_until = host.paused_until.max(until);
        }
    }

    fn order_switchover(&mut self, node: usize, group: usize) {
        if let Some(process) = self.hosts[node].process.as_mut() {
            // Whether it is refused is not for the world to judge.
            let (reply, _) = sync_channel(1);
            let group = GroupId(group as u16);
            let _ = process.orders.push(Command::Switchover { group, reply });
            self.wake(node);
        }
    }

    /// Gives the clock of `end` the rate `ppb`, after it has jumped `ahead`.
    fn set_rate(&mut self, end: End, ppb: i64, ahead: u64) {
        let now = self.now();
        match end {
            End::Node(node) => {
                let host = &mut self.hosts[node];
                host.set_rate(now, ppb, ahead);
                // The same local instants lie elsewhere in true time.
                host.permits.iter_mut().for_each(|known| known.0 = None);
                self.turns[node] = u64::MAX;
                self.turn_now(node);
                self.observe_permits(node);
            }
            End::Reference(reference) => self.witnesses[reference].clock.set_rate(now, ppb, ahead),
        }
    }

    fn set_capacity(&mut self, node: usize, bytes: usize) {
        self.take_in(node);
        for network in 0..self.network.count() {
            self.exchange.get().mailbox(node, network).capacity = bytes;
        }
    }

    /// Junk comes one datagram after the other.
    pub(super) fn fault_acts(&mut self, at: usize) {
        let timed = self.script[at];
        match timed.fault {
            Fault::Flood { .. } => return self.flood_acts(at),
            Fault::Keys { .. } => return self.keys_act(at),
            _ => {}
        }
        let Fault::Junk {
            network,
            to,
            rate,
            kind,
        } = timed.fault
        else {
            return;
        };
        let now = self.now();
        if self.active.binary_search(&at).is_err() {
            return;
        }
        if let Some(datagram) = self.junk(network, to, kind) {
            let nobody = self.hosts.len() + self.config.references.len() + kind as usize;
            let source = || Some(datagram.source);
            self.trace.datagram(now, nobody, &datagram, source);
            self.network.inject(&mut self.queue, datagram);
            self.announce();
        }
        let gap = 2 * 1_000_000_000 / rate.max(1);
        let next = now + 1 + self.junk.below(gap);
        self.queue.push(next, What::FaultActs { fault: at as u32 });
    }

    fn junk(&mut self, network: usize, to: End, kind: Junk) -> Option<Parcel> {
        let source = match kind {
            Junk::Replay => return self.recorded(network, to),
            Junk::Redirected => return self.redirected(network, to),
            Junk::Stripped => return self.stripped(network, to),
            Junk::Spliced => return self.spliced(network, to),
            Junk::Downgraded => return self.downgraded(network, to),
            Junk::Noise => NOBODY,
            Junk::Forged => {
                if self.junk.chance(0.5)
                    && let Some(changed) = self.changed(network, to)
                {
                    return Some(changed);
                }
                self.network.address(network, self.partner_of(to)?)?
            }
        };
        let target = self.network.address(network, to)?;
        let mut parcel = self.exchange.get().parcel(network, source, target);
        parcel.sent = self.now();
        let bytes = &mut parcel.bytes;
        let mut len = self.junk.below(200) as usize;
        // Now and then it begins like one of ours.
        let kinds = [
            0x0001_0002u32,
            0x1001_0002,
            0x2001_0002,
            0x2003_0001,
            0x3001_0001,
        ];
        if self.junk.chance(0.5) {
            bytes.extend_from_slice(&kinds[self.junk.below(5) as usize].to_be_bytes());
        }
        while len > 0 {
            let noise = self.junk.next_u64().to_le_bytes();
            let some = len.min(noise.len());
            bytes.extend_from_slice(&noise[..some]);
            len -= some;
        }
        Some(parcel)
    }

    /// Who sends to `to`, in good faith.
    pub(super) fn partner_of(&self, to: End) -> Option<End> {
        match to {
            End::Node(node) => {
                let partner = *self.config.partners(NodeId(node as u8)).first()?;
                Some(End::Node(partner.0.into()))
            }
            End::Reference(_) => Some(End::Node(0)),
        }
    }

    fn recorded(&mut self, network: usize, to: End) -> Option<Parcel> {
        let kept = self.network.recorded(network, to)?;
        let mut parcel = self.exchange.get().room(kept.bytes.len());
        kept.copy_to(&mut parcel);
        Some(parcel)
    }

    /// What was sent on another network or to somebody else, as if it came from who sends to `to` in good faith.
    fn redirected(&mut self, network: usize, to: End) -> Option<Parcel> {
        let source = self.network.address(network, self.partner_of(to)?)?;
        let target = self.network.address(network, to)?;
        let kept = self.network.recorded_elsewhere(network, to)?;
        let mut parcel = self.exchange.get().room(kept.bytes.len());
        kept.copy_to(&mut parcel);
        (parcel.network, parcel.source) = (network, source);
        (parcel.target, parcel.to) = (target, Some(to));
        Some(parcel)
    }

    /// The message that was sent before, without its envelope; every second time with up to four bytes changed.
    fn stripped(&mut self, network: usize, to: End) -> Option<Parcel> {
        let mut parcel = self.recorded(network, to)?;
        parcel.is_changed_from_here();
        let end = message_in(&parcel.bytes).len();
        let begin = before_message(&parcel.bytes);
        parcel.bytes.drain(..begin);
        parcel.bytes.truncate(end);
        if self.junk.chance(0.5) {
            self.change(&mut parcel);
        }
        Some(parcel)
    }

    /// The front of what was sent before and the rest of something else that was: of another channel, say, or of another state.
    fn spliced(&mut self, network: usize, to: End) -> Option<Parcel> {
        let mut parcel = self.recorded(network, to)?;
        parcel.is_changed_from_here();
        let other = self.recorded(network, to)?;
        let shorter = parcel.bytes.len().min(other.bytes.len());
        let cut = self.junk.below(shorter as u64) as usize;
        parcel.bytes.truncate(cut);
        parcel.bytes.extend_from_slice(&other.bytes[cut..]);
        // Where both began alike, it is the other one, and may open.
        Some(match parcel.bytes == other.bytes {
            true => other,
            false => parcel,
        })
    }

    /// What was sent before with a lower version, the envelope's or, out of it, that of the message itself.
    fn downgraded(&mut self, network: usize, to: End) -> Option<Parcel> {
        let mut parcel = match self.junk.chance(0.5) {
            true => self.recorded(network, to)?,
            false => self.stripped(network, to)?,
        };
        parcel.is_changed_from_here();
        let version = self.junk.below(2) as u16;
        if let Some(bytes) = parcel.bytes.get_mut(VERSION) {
            bytes.copy_from_slice(&version.to_be_bytes());
        }
        Some(parcel)
    }

    /// What the witness at `reference` says at present that is not so.
    pub(super) fn lie_of(&self, reference: usize) -> Option<Lie> {
        self.active_faults().find_map(|fault| match *fault {
            Fault::Liar { reference: of, lie } if of == reference => Some(lie),
            _ => None,
        })
    }

    /// What was sent before, with up to four bytes changed.
    fn changed(&mut self, network: usize, to: End) -> Option<Parcel> {
        let mut parcel = self.recorded(network, to)?;
        parcel.is_changed_from_here();
        self.change(&mut parcel);
        Some(parcel)
    }

    fn change(&mut self, parcel: &mut Parcel) {
        for _ in 0..=self.junk.below(4) {
            let at = self.junk.below(parcel.bytes.len().max(1) as u64) as usize;
            if let Some(byte) = parcel.bytes.get_mut(at) {
                *byte = self.junk.next_u64() as u8;
            }
        }
    }
}
