//! Checks across sections, and the resolution of names to indices.
//!
//! Each check works with what is known: a field that is already reported as wrong is `None` and
//! silences only the checks that need it. [`resolve`] therefore runs over the whole file however
//! much is wrong, and gives a configuration only when nothing was.

mod addresses;
mod applications;
mod capacity;
mod draft;
mod field_drivers;
mod field_security;
mod groups;
mod hot_restart;
mod kinds;
mod names;
mod node_id;
mod persist;
mod program_file;
mod programs;
mod security;
mod tags;
mod timing;
mod weaknesses;
mod written_once;

use std::path::PathBuf;

use bumpless_base::{Duration, LinkId, NodeId};

pub(crate) use capacity::{ADDRESSABLE, Kinds, buffers};

use crate::file::File;
use crate::model::{
    ChangeSettings, Config, Placement, PlanSettings, Realtime, Reception, Registration,
};
use crate::reader::Reader;
use crate::security::Security;

/// What later checks need to know from earlier ones.
pub(crate) struct Known {
    networks: names::Index,
    nodes: names::Index,
    references: names::Index,
    groups: names::Index,
}

/// Whether it is wrong if states need more than the networks carry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// It is.
    Needed,
    /// A plan will say.
    LeftToPlan,
}

/// Checks `file`; `None` where anything is wrong, now or before.
pub(crate) fn resolve(reader: &mut Reader, file: &File, room: Room) -> Option<Config> {
    let known = Known {
        networks: names::networks(reader, file),
        nodes: names::nodes(reader, file),
        references: names::references(reader, file),
        groups: names::groups(reader, file),
    };
    names::pair(reader, file);
    names::applications(reader, file);
    let timing = timing::check(reader, &file.timing);
    let map = addresses::check(reader, file, &known);
    let security = security::check(reader, file);
    names::in_certificates(reader, file, security.as_ref());
    let protection = security.as_ref().map(Security::overhead);
    let networks = addresses::networks(reader, file, &map, protection);
    let nodes = addresses::nodes(reader, file, &map);
    let groups = groups::check(reader, file, &known, &map);
    let common = (timing.as_ref(), security.as_ref());
    let drafts = applications::check(reader, file, &known, &map, &groups, common);
    hot_restart::check(reader, file, &drafts, timing.as_ref());
    persist::check(reader, file, &drafts, &groups);
    let transfer = capacity::check(reader, file, &drafts, &groups, (&map, protection), room);
    let realtime = realtime(&file.realtime);
    let reception = reception(&file.reception);
    let registration = registration(&file.registration);
    let plan = plan(&file.plan);
    let together = file.change.together;
    let applications: Option<Vec<_>> = drafts.into_iter().map(draft::Draft::finish).collect();
    if !reader.is_clean() {
        return None;
    }
    let mut config = Config {
        pair: file.pair.name.clone()?,
        timing: timing?,
        transfer: transfer?,
        security: security?,
        realtime: realtime?,
        reception: reception?,
        registration: registration?,
        plan: plan?,
        change: ChangeSettings {
            together: together?,
        },
        networks: networks?,
        nodes: nodes?,
        references: map.references.into_iter().collect::<Option<_>>()?,
        groups: groups
            .into_iter()
            .map(groups::Draft::finish)
            .collect::<Option<_>>()?,
        applications: applications?,
        weaknesses: Vec::new(),
    };
    hot_restart::spread(&mut config);
    config.weaknesses = weaknesses::find(&config);
    Some(config)
}

fn plan(given: &crate::schema::PlanSettings) -> Option<PlanSettings> {
    Some(PlanSettings {
        run_although_refused: given.run_although_refused?,
        jitter: given.jitter?,
    })
}

fn reception(given: &crate::schema::Reception) -> Option<Reception> {
    Some(Reception {
        guard: given.guard?,
        other_per_s: u32::try_from(given.other?).ok()?,
        reserve_percent: given.reserve?,
        packet_ns: given.packet?,
        dropped_ns: given.dropped?,
        ring: given.ring?,
        placement: Placement {
            interrupt_cpus: given.interrupt_cpus?,
            rps_cpus: given.rps_cpus?,
            napi_priority: { given.napi_priority? }
                .map(u8::try_from)
                .transpose()
                .ok()?,
        },
        busy_poll: Duration::from_micros(given.busy_poll?),
    })
}

/// What programs may register; the outer `None`: it is wrong.
fn registration(given: &crate::schema::Registration) -> Option<Option<Registration>> {
    let Some(group) = given.group.clone()? else {
        return Some(None);
    };
    Some(Some(Registration {
        group,
        socket: given.socket.clone()?.map(PathBuf::from),
        flows: usize::try_from(given.flows?).ok()?,
        processor_percent: given.share?,
        priority_max: u8::try_from(given.priority_max?).ok()?,
        burst_max: { given.burst_max? }.map(u32::try_from).transpose().ok()?,
    }))
}

fn realtime(given: &crate::schema::Realtime) -> Option<Realtime> {
    let priority = u8::try_from(given.priority?).ok()?;
    let small = |number: Option<u64>| number.map(u16::try_from).transpose().ok();
    Some(Realtime {
        priority: (priority > 0).then_some(priority),
        lock_memory: given.lock_memory?,
        cpu: small(given.cpu?)?,
        wake_latency: small(given.wake_latency?)?,
    })
}

/// The link at position `i`; the number of networks is checked by then.
fn link(i: usize) -> LinkId {
    LinkId(u8::try_from(i).unwrap_or(u8::MAX))
}

/// The node at position `i`.
fn node(i: usize) -> NodeId {
    NodeId(u8::try_from(i).unwrap_or(u8::MAX))
}
