//! What is sent arrives, or not, and is judged.

use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant};
use bumpless_iprp::Discard;

use super::{DATA_PORT, Event, World, payload};
use crate::check::{Datagram, Must};
use crate::host::ind;
use crate::plan::{address, at, group};

impl World {
    /// When what leaves at `from` arrives at `to`; never, if it is lost.
    pub(super) fn carry(&mut self, from: usize, to: usize, network: usize) -> Option<Instant> {
        let is_storm = self.is_storm();
        let plan = &self.plan.networks[network];
        let is_cut = plan
            .cuts
            .iter()
            .any(|(from, until)| (*from..*until).contains(&self.now));
        let (loss, delay, jitter) = (plan.loss, plan.delay, plan.jitter);
        let is_on = self.hosts[from].on[network] && self.hosts[to].on[network];
        let is_lost = is_storm && self.random.below(1_000) < loss;
        let late = Duration::from_nanos(self.random.below(jitter.as_nanos().max(1)));
        (is_on && !is_cut && !is_lost).then(|| self.now + delay + late)
    }

    pub(super) fn transmit(&mut self, from: usize, network: usize, to: IpAddr, datagram: Datagram) {
        let source = SocketAddr::new(address(self.plan.ipv6, from, network), DATA_PORT);
        for host in 0..self.hosts.len() {
            let is_members = to == group(self.plan.ipv6) && host != from && self.is_member(host);
            if !is_members && to != address(self.plan.ipv6, host, network) {
                continue;
            }
            if self.recorded.len() < 4_000 {
                self.recorded.push((host, network, datagram.clone()));
            }
            let twice =
                self.is_storm() && self.random.below(1_000) < self.plan.networks[network].twice;
            for _ in 0..1 + u32::from(twice) {
                if let Some(when) = self.carry(from, host, network) {
                    let datagram = datagram.clone();
                    let event = Event::Arrive {
                        host,
                        network,
                        from: source,
                        datagram,
                    };
                    self.schedule(when, event);
                }
            }
        }
    }

    /// A host hears an answer.
    fn answered(&mut self, host: usize, datagram: &Datagram) -> Result<(), String> {
        let mut bytes = datagram.bytes.clone();
        if let Some(sender) = &mut self.hosts[host].sender {
            let result = sender.handle_feedback(self.now, &mut bytes);
            if result.is_ok() {
                let flows = self.flows_of(host);
                self.asked.answered(host, &flows, &datagram.bytes);
            }
            if datagram.forged && result.is_ok() {
                return Err("genuine: a forged answer was believed".to_owned());
            }
        }
        self.look_after(host);
        Ok(())
    }

    pub(super) fn arrive(
        &mut self,
        host: usize,
        network: usize,
        from: SocketAddr,
        datagram: Datagram,
    ) -> Result<(), String> {
        if datagram.is_feedback() {
            return self.answered(host, &datagram);
        }
        let life = self.hosts[host].life;
        let packet = datagram.packet;
        let flow = packet.map_or(0, |packet| self.packets[packet as usize].flow);
        let plan = self.plan.flows[flow];
        let most = self.plan.max_lost;
        let must = self.check.expect(&life, flow, plan.from, &datagram, most);
        let (mut bytes, on) = (datagram.bytes.clone(), self.random.below(4) > 0);
        let on = on.then(|| ind(network));
        let Some(receiver) = &mut self.hosts[host].receiver else {
            return Ok(());
        };
        let result = receiver.handle_data(self.now, on, from, &mut bytes);
        if self.traces {
            println!(
                "{} host {host} packet {packet:?} {:?} {} -> {:?} {must:?} replayed {}",
                self.now.since(at(Duration::ZERO)),
                datagram.place(),
                datagram.number(),
                result.as_ref().map(|_| ()),
                datagram.replayed
            );
        }
        if let Some(broken) = broken(result.is_ok(), must, packet.is_some()) {
            return Err(format!(
                "{broken}: host {host}: {result:?}, packet {packet:?} (replayed {}) {:?} number {} of {life:?}",
                datagram.replayed,
                datagram.place(),
                datagram.number(),
            ));
        }
        match (result, packet) {
            (Ok(delivery), Some(packet)) => {
                if delivery.flow != plan.flow || delivery.payload != payload(&plan.flow, packet) {
                    return Err(format!("whole: packet {packet} came as {delivery:?}"));
                }
                self.check.opened(&life, flow, &datagram);
                self.check.deliver(self.now, &life, packet, &datagram)?;
            }
            (Ok(it), None) => return Err(format!("genuine: out of nothing came {it:?}")),
            // Of which flow is not known outside; any that its host sends.
            (Err(Discard::Probe), _) => (0..self.plan.flows.len())
                .for_each(|flow| self.check.opened_probe(&life, flow, &datagram)),
            (Err(Discard::Duplicate), _) => self.check.opened(&life, flow, &datagram),
            (Err(_), _) => self.check.refused += 1,
        }
        self.look_after(host);
        Ok(())
    }
}

/// Which promise is broken when a datagram was taken or not that must be what is expected; some are of a packet that was sent.
fn broken(is_taken: bool, must: Must, is_packet: bool) -> Option<&'static str> {
    match (is_taken, must) {
        (false, Must::Deliver) => Some("first copy wins"),
        (true, Must::Refuse) if !is_packet => Some("genuine"),
        (true, Must::Refuse) => Some("once"),
        _ => None,
    }
}
