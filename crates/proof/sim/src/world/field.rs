//! Requests to field devices, and their answers.

use bumpless_controller::FieldErrorKind;
use bumpless_controller::executor::Answer;
use bumpless_controller::executor::Need;

use super::World;
use super::applications::failed;
use crate::application::Waiting;
use crate::check::Output;
use crate::device::{Ask, Reply, Request};
use crate::queue::What;
use crate::script::{Fault, Wrong};
use crate::trace::{Happening, Judgement};
use crate::variants::Configuration;

/// Illegal data value: what a device answers to an older cycle (F-6).
const ILLEGAL_VALUE: u8 = 3;

impl World {
    /// Sends a request; returns its number.
    pub(super) fn ask(&mut self, node: usize, app: usize, application: usize, ask: Ask) -> u32 {
        if let Ask::Write(stamp) = ask {
            let group = self.config.applications[application].group;
            if self.hosts[node].owes_observation {
                // A turn that a pause interrupted has ended since it was looked at.
                self.observe_permits(node);
            }
            self.checks
                .writes(group, node, stamp.epoch, self.queue.now());
        }
        let request = Request {
            node,
            incarnation: self.hosts[node].incarnation,
            app,
            application,
            elsewhere: self.hosts[node].configuration == Configuration::Wrong(Wrong::Field),
            ask,
            reply: None,
            serial: self.asked,
        };
        self.asked += 1;
        let slot = match self.vacant_requests.pop() {
            Some(slot) => {
                self.requests[slot as usize] = Some(request);
                slot
            }
            None => {
                self.requests.push(Some(request));
                (self.requests.len() - 1) as u32
            }
        };
        let way = self.devices[application].way();
        self.send_request(slot, self.now() + way);
        slot
    }

    /// A request is at its device, or its answer back.
    pub(super) fn request(&mut self, slot: u32) {
        let Some(request) = self.requests[slot as usize] else {
            return;
        };
        match request.reply {
            None => self.at_device(slot, request),
            Some(reply) => {
                self.requests[slot as usize] = None;
                self.vacant_requests.push(slot);
                self.answered(slot, &request, reply);
            }
        }
    }

    fn at_device(&mut self, slot: u32, mut request: Request) {
        if let Some((late, until)) = self.hangs(&request) {
            self.asks_in_vain(&request);
            if late {
                let way = self.devices[request.application].way();
                self.queue
                    .push(until + way, What::Request { request: slot });
            } else {
                self.requests[slot as usize] = None;
                self.vacant_requests.push(slot);
            }
            return;
        }
        let devices = match request.elsewhere {
            true => &mut self.other_devices,
            false => &mut self.devices,
        };
        let device = &mut devices[request.application];
        let reply = device.serve(request.ask);
        let way = device.way();
        if let Ask::Write(stamp) = request.ask
            && !request.elsewhere
        {
            self.judge_write(&request, stamp, reply);
        }
        request.reply = Some(reply);
        self.requests[slot as usize] = Some(request);
        self.send_request(slot, self.now() + way);
    }

    pub(super) fn asks_in_vain(&mut self, request: &Request) {
        let now = self.queue.now();
        let group = self.config.applications[request.application].group;
        let host = &self.hosts[request.node];
        let permitted = host.permits.get(group).is_some_and(|it| it.1 > now);
        if permitted && host.incarnation == request.incarnation {
            self.checks
                .asks_in_vain(request.application, request.node, now);
        }
    }

    fn judge_write(
        &mut self,
        request: &Request,
        stamp: bumpless_controller::OutputStamp,
        reply: Reply,
    ) {
        let now = self.now();
        let output = Output {
            application: request.application,
            node: request.node,
            epoch: stamp.epoch,
            cycle: stamp.cycle,
        };
        let judgement = match reply {
            Reply::OlderEpoch(_) => Judgement::OlderEpoch,
            Reply::OlderCycle => Judgement::OlderCycle,
            Reply::Accepted | Reply::Inputs(_) => {
                self.checks.accepted(&output, now);
                Judgement::Accepted
            }
        };
        self.tell(Happening::Output { output, judgement });
    }

    /// Whether the device leaves the request without an answer; if so, whether it does what was
    /// asked later, and when.
    fn hangs(&self, request: &Request) -> Option<(bool, u64)> {
        if request.elsewhere {
            return None;
        }
        self.active.iter().find_map(|&at| {
            let timed = &self.script[at];
            let Fault::Device {
                application,
                node,
                late,
            } = timed.fault
            else {
                return None;
            };
            let concerns =
                application == request.application && node.is_none_or(|node| node == request.node);
            concerns.then_some((late, timed.until))
        })
    }

    fn answered(&mut self, slot: u32, request: &Request, reply: Reply) {
        let now = self.queue.now();
        let host = &mut self.hosts[request.node];
        if host.incarnation != request.incarnation {
            return;
        }
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.app(request.app) else {
            return;
        };
        let Waiting::Request {
            request: awaited,
            need,
            until,
        } = thread.waiting
        else {
            return;
        };
        if awaited != slot {
            return;
        }
        if host.paused_until > now {
            // The answer waits in the socket; what counts is when the thread looks.
            self.requests[slot as usize] = Some(*request);
            self.vacant_requests.retain(|&vacant| vacant != slot);
            let at = host.paused_until;
            return self.queue.push(at, What::Request { request: slot });
        }
        // A call that returns past its end reports a time-out, whatever has come.
        let answer = if host.clock.local(now) >= until {
            failed(&need, FieldErrorKind::Timeout)
        } else {
            answer(&need, reply)
        };
        self.go_on(request.node, request.app, Some(answer));
    }
}

fn answer(need: &Need, reply: Reply) -> Answer {
    match (need, reply) {
        (Need::Write { .. }, Reply::Accepted | Reply::Inputs(_)) => Answer::Written(Ok(())),
        (Need::Write { .. }, Reply::OlderEpoch(seen)) => {
            failed(need, FieldErrorKind::RejectedEpoch { seen })
        }
        (Need::Write { .. }, Reply::OlderCycle) => {
            failed(need, FieldErrorKind::Exception(ILLEGAL_VALUE))
        }
        (Need::KeepWarm { .. }, Reply::Inputs(sample)) => Answer::Warm(Ok(sample)),
        (_, Reply::Inputs(sample)) => Answer::Read(Ok(sample)),
        (need, _) => failed(need, FieldErrorKind::Malformed),
    }
}
