//! Applications: times that fit each other, networks, and what their kind needs.

use bumpless_base::{ChannelId, Duration, LinkSet};

use super::addresses::Map;
use super::draft::Draft;
use super::timing::ms;
use super::written_once::Writers;
use super::{Known, groups, kinds, link, persist, security};
use crate::file::{ApplicationEntry, File};
use crate::model::{ApplicationKind, Commit, Timing};
use crate::reader::Reader;
use crate::schema;
use crate::security::{Security, StateSecurity};

pub(crate) fn check(
    reader: &mut Reader,
    file: &File,
    known: &Known,
    map: &Map,
    groups: &[groups::Draft],
    (timing, packets): (Option<&Timing>, Option<&Security>),
) -> Vec<Draft> {
    let mut channels = std::collections::BTreeMap::new();
    let mut writers = Writers::default();
    let mut drafts = Vec::new();
    for entry in &file.applications {
        let fields = &entry.fields;
        if let Some(channel) = fields.channel {
            let line = fields.place.line_of("channel");
            if let Some(other) = channels.get(&channel) {
                let wrong = format!("{channel} is already the channel on line {other}");
                reader.wrong(
                    &fields.place,
                    "channel",
                    wrong,
                    "give each application its own",
                );
            } else {
                channels.insert(channel, line);
            }
        }
        let at = ("group", fields.place.line_of("group"));
        let group = fields.group.as_ref();
        let group = group.and_then(|name| known.groups.find(reader, &fields.place, at, name));
        let networks = networks(
            reader,
            file,
            known,
            map,
            fields,
            group.and_then(|i| groups.get(i)),
        );
        let kind = kinds::check(reader, entry, &mut writers);
        let of_others = (group, networks, kind);
        drafts.push(application(reader, entry, of_others, (timing, packets)));
    }
    drafts
}

fn application(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    (group, networks, kind): (Option<usize>, Option<LinkSet>, Option<ApplicationKind>),
    (timing, packets): (Option<&Timing>, Option<&Security>),
) -> Draft {
    let fields = &entry.fields;
    let deadline = deadline(reader, fields);
    let security = security::of_states(reader, entry.security.as_ref(), packets);
    let overhead = security.as_ref().map(StateSecurity::overhead);
    Draft {
        place: fields.place.clone(),
        name: fields.name.clone(),
        group,
        channel: fields
            .channel
            .and_then(|n| u16::try_from(n).ok())
            .and_then(ChannelId::new),
        period: fields.period,
        deadline,
        expiry: expiry(reader, fields, deadline, timing),
        persist: persist::of_application(reader, fields),
        commit: fields.commit,
        distribution: fields.distribution,
        unsent: fields.unsent,
        networks,
        // The shape keeps it far below 256.
        retransmissions: fields
            .retransmissions
            .map(|given| given.and_then(|n| u8::try_from(n).ok())),
        accepted_loss: accepted_loss(fields),
        state_max: kind.as_ref().zip(overhead).map(|(kind, overhead)| {
            // What a channel can carry is checked with its memory.
            kinds::state_max(kind).saturating_add(overhead)
        }),
        kind,
        field: kinds::field(reader, entry, packets),
        security,
    }
}

/// States lost in a year unless the file says otherwise: what a budget of five gives for states of up to
/// some megabytes (first paper, 7.2.4).
const ACCEPTED_LOSS_PER_YEAR: f64 = 1e-6;

fn accepted_loss(fields: &schema::Application) -> Option<Option<f64>> {
    let given = fields.accepted_loss_per_year?;
    let by_default = fields
        .retransmissions?
        .is_none()
        .then_some(ACCEPTED_LOSS_PER_YEAR);
    Some(given.or(by_default))
}

fn deadline(reader: &mut Reader, fields: &schema::Application) -> Option<Duration> {
    let period = fields.period?;
    let Some(deadline) = fields.deadline? else {
        return Some(match fields.commit? {
            Commit::BeforeOutput => period / 2,
            Commit::Async => period,
        });
    };
    if deadline > period {
        let wrong = format!(
            "{} ms is longer than the period, {} ms",
            ms(deadline),
            ms(period)
        );
        let right = "give at most the period: a state is replaced in the next cycle";
        reader.wrong(&fields.place, "deadline_ms", wrong, right);
    }
    Some(deadline)
}

fn expiry(
    reader: &mut Reader,
    fields: &schema::Application,
    deadline: Option<Duration>,
    timing: Option<&Timing>,
) -> Option<Duration> {
    let (period, deadline, timing) = (fields.period?, deadline?, timing?);
    let least = timing.least_expiry(period, deadline);
    let Some(expiry) = fields.expiry? else {
        return Some(least);
    };
    if expiry < least {
        let wrong = format!(
            "{} ms is shorter than 2 periods of {} ms, the deadline of {} ms and the failover time \
             of {} ms together",
            ms(expiry),
            ms(period),
            ms(deadline),
            ms(timing.failover_time())
        );
        let right = format!("give at least {}, or leave it out", ms(least));
        reader.wrong(&fields.place, "expiry_ms", wrong, right);
    }
    Some(expiry)
}

/// The networks of the application's channel.
fn networks(
    reader: &mut Reader,
    file: &File,
    known: &Known,
    map: &Map,
    fields: &schema::Application,
    group: Option<&groups::Draft>,
) -> Option<LinkSet> {
    let place = &fields.place;
    let Some(names) = fields.networks.as_ref()? else {
        return group
            .filter(|group| group.candidates.is_some())
            .map(|group| group.links);
    };
    if names.is_empty() {
        let right = "name at least one network, or leave the field out for all";
        reader.wrong(place, "networks", "no network carries the state", right);
    }
    let mut set = LinkSet::EMPTY;
    let mut whole = true;
    for name in names {
        let at = ("networks", name.line);
        let Some(position) = known.networks.find(reader, place, at, &name.name) else {
            whole = false;
            continue;
        };
        set.insert(link(position));
        for id in group
            .and_then(|group| group.candidates.as_ref())
            .into_iter()
            .flatten()
        {
            let i = usize::from(id.0);
            if map.links(i).contains(link(position)) {
                continue;
            }
            let node = file
                .nodes
                .get(i)
                .and_then(|node| node.name.as_deref())
                .unwrap_or("?");
            let wrong = format!("node {node:?} has no address on network {:?}", name.name);
            let right = "give it one, or do not use the network here";
            reader.wrong_on(name.line, format!("{}.networks", place.path), wrong, right);
        }
    }
    whole.then_some(set)
}
