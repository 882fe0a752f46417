//! Processes that restart, networks that leave, numbers that end; and an attacker who sees and sends what it likes, and has no key.

use std::net::{IpAddr, SocketAddr};

use bumpless_base::Duration;
use bumpless_iprp::{Flow, MAX_MESSAGE, UDP};

use super::{Event, World};
use crate::check::Datagram;
use crate::plan::{Fault, address, at};

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        let now = self.now;
        if self.traces {
            println!("{} {fault:?}", now.since(at(Duration::ZERO)));
        }
        match fault {
            Fault::SenderRestarts(host, gone) => {
                if self.hosts[host].sender.take().is_some() {
                    self.schedule(now + gone, Event::SenderBack(host));
                }
            }
            Fault::ReceiverRestarts(host, gone, keeps_root) => {
                if self.hosts[host].receiver.take().is_some() {
                    self.schedule(now + gone, Event::ReceiverBack(host, keeps_root));
                }
            }
            Fault::ReceiverStops(host, gone) => {
                if let Some(receiver) = &mut self.hosts[host].receiver {
                    receiver.withdraw();
                    self.look_after(host);
                    let stopped = self.hosts[host].receiver.take();
                    let mut message = [0; MAX_MESSAGE];
                    let more = stopped.and_then(|mut it| it.poll_advertisement(now, &mut message));
                    assert!(more.is_none(), "everybody has been told");
                    self.schedule(now + gone, Event::ReceiverBack(host, false));
                }
            }
            Fault::NetworkLeaves(host, network, gone) => {
                self.change_network(host, network, false);
                self.schedule(now + gone, Event::NetworkBack(host, network));
            }
            Fault::NumbersEnd(host) => {
                if let Some(sender) = &mut self.hosts[host].sender {
                    let all: Vec<_> = sender.sessions().map(|it| it.session).collect();
                    all.into_iter()
                        .for_each(|session| sender.skip_to_end(session, 1));
                }
            }
        }
    }

    pub(super) fn change_network(&mut self, host: usize, network: usize, is_there: bool) {
        self.hosts[host].on[network] = is_there;
        let networks = self.hosts[host].networks(self.plan.ipv6);
        if let Some(sender) = &mut self.hosts[host].sender {
            sender.set_networks(networks);
        }
        if let Some(receiver) = &mut self.hosts[host].receiver {
            receiver.set_networks(self.now, networks);
        }
        self.look_after(host);
    }

    pub(super) fn attack(&mut self) -> Result<(), String> {
        if let Some(every) = self.plan.attack_every {
            self.schedule(self.now + every, Event::Attack);
        }
        let anyone = SocketAddr::new([192, 0, 2, self.random.below(256) as u8].into(), 7);
        match self.random.below(4) {
            0 => {
                let host = self.random.below(self.hosts.len() as u64) as usize;
                let flow = Flow {
                    source: IpAddr::from([192, 0, 2, self.random.below(256) as u8]),
                    destination: address(false, host, 0),
                    protocol: UDP,
                    source_port: self.random.below(1 << 16) as u16,
                    destination_port: crate::plan::PORT,
                };
                if let Some(receiver) = &mut self.hosts[host].receiver {
                    receiver.handle_monitored(self.now, &flow);
                }
                self.look_after(host);
                Ok(())
            }
            1 => {
                let host = self.random.below(self.hosts.len() as u64) as usize;
                let len = self.random.below(120) as usize;
                let mut bytes: Vec<u8> = (0..len).map(|_| self.random.next_u64() as u8).collect();
                if let Some(first) = bytes.first_mut() {
                    *first = 0x1a;
                }
                self.arrive(host, 0, anyone, forged(bytes))
            }
            _ if self.recorded.is_empty() => Ok(()),
            kind => {
                let which = self.random.below(self.recorded.len() as u64) as usize;
                let (host, network, mut datagram) = self.recorded[which].clone();
                datagram.replayed = true;
                if kind == 2 {
                    let bit = self.random.below(datagram.bytes.len() as u64 * 8) as usize;
                    datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                    datagram = forged(datagram.bytes);
                }
                self.arrive(host, network, anyone, datagram)
            }
        }
    }
}

fn forged(bytes: Vec<u8>) -> Datagram {
    Datagram {
        bytes,
        packet: None,
        replayed: false,
        forged: true,
    }
}
