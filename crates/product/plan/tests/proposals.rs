//! What a plan proposes is written into the configuration word for word, and then it is a yes.

use std::collections::BTreeMap;

use bumpless_config::Config;
use bumpless_plan::headroom::ChannelHeadroom;
use bumpless_plan::report::{Report, units, words};
use bumpless_plan::variation::{Variation, step};
use bumpless_plan::{Channel, Scenario, Verdict, plan};
use proptest::prelude::*;

/// The fields of a table of a configuration.
type Table = BTreeMap<String, String>;

/// A pair whose values can be changed.
#[derive(Clone, Debug, Default)]
struct Pair {
    plan: Table,
    transfer: Table,
    networks: Vec<Table>,
    channels: Vec<Table>,
}

fn table(fields: &[(&str, String)]) -> Table {
    let own = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
    fields.iter().map(own).collect()
}

impl Pair {
    fn name(kind: &str, at: usize) -> String {
        format!("{kind}{at}")
    }

    fn text(&self) -> String {
        let fields = |table: &Table| -> String {
            let lines = table
                .iter()
                .map(|(key, value)| format!("{key} = {value}\n"));
            lines.collect()
        };
        let count = self.networks.len();
        let addresses = |node: usize| -> String {
            let each = (0..count).map(|at| format!("n{at} = \"127.0.{}.{node}:4700\"", at + 1));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "[pair]\nname = \"p\"\n[plan]\n{}[transfer]\n{}",
            fields(&self.plan),
            fields(&self.transfer)
        );
        for (at, network) in self.networks.iter().enumerate() {
            text += &format!("[[network]]\nname = \"n{at}\"\n{}", fields(network));
        }
        for (at, node) in ["left", "right"].into_iter().enumerate() {
            let addresses = addresses(at + 1);
            text += &format!("[[node]]\nname = \"{node}\"\naddresses = {{ {addresses} }}\n");
        }
        text += "[[reference]]\nname = \"w\"\nkind = \"witness\"\nnetwork = \"n0\"\naddress = \"127.0.1.9:4710\"\n\
            [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nreferences = [\"w\"]\n";
        for (at, channel) in self.channels.iter().enumerate() {
            text += &format!(
                "[[application]]\nname = \"c{at}\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = {}\n{}",
                at + 1,
                fields(channel)
            );
        }
        text
    }

    fn config(&self) -> Result<Config, String> {
        Config::parse(&self.text(), "t").map_err(|problems| format!("{problems:#?}"))
    }

    /// Of the states alone: what the distance does not permit, proposals do not change (P-80).
    fn verdict(&self) -> Result<Verdict, String> {
        let plan = plan(&self.config()?, None);
        let is = |verdict| {
            plan.senders
                .iter()
                .any(|sender| sender.verdict() == verdict)
        };
        let verdict = match (is(Verdict::No), is(Verdict::CannotSay)) {
            (true, _) => Verdict::No,
            (false, true) => Verdict::CannotSay,
            (false, false) => Verdict::Yes,
        };
        let refusals = plan.distances.iter().flat_map(|it| &it.refusals);
        let late = refusals.clone().find(|it| it.clause == "P-83");
        // The admission test asks for more than a state's own way.
        assert!(
            verdict != Verdict::Yes || late.is_none(),
            "{late:?}\n{}",
            self.text()
        );
        Ok(verdict)
    }

    fn report(&self) -> Report {
        let config = self
            .config()
            .unwrap_or_else(|problems| panic!("{problems}"));
        Report::new("p", plan(&config, None), |_, _| ())
    }

    /// The table of the channel or network `name`.
    fn table(&mut self, name: &str) -> Option<&mut Table> {
        let networks = self.networks.iter_mut().enumerate();
        let networks = networks.map(|(at, table)| (Self::name("n", at), table));
        let channels = self.channels.iter_mut().enumerate();
        let channels = channels.map(|(at, table)| (Self::name("c", at), table));
        let mut all = networks.chain(channels);
        all.find_map(|(known, table)| (known == name).then_some(table))
    }

    /// The pair changed as the sentence `proposal` says.
    fn followed(&self, proposal: &str) -> Self {
        let mut pair = self.clone();
        let sure = proposal.split(", if ").next().unwrap_or(proposal);
        let Some((place, changes)) = sure.split_once(": ") else {
            let (key, value) = assignment(sure);
            let section = match key {
                "jitter_ms" => &mut pair.plan,
                _ => &mut pair.transfer,
            };
            section.insert(key.into(), value.into());
            return pair;
        };
        match place {
            "all networks" => pair.all_faster(changes),
            "every network that has more" => {
                let (key, value) = assignment(changes);
                for network in &mut pair.networks {
                    if number(network, key) > value.parse().unwrap() {
                        network.insert(key.into(), value.into());
                    }
                }
            }
            place => {
                let name = place.trim_start_matches("network ");
                let table = pair.table(name).unwrap_or_else(|| panic!("{proposal}"));
                write(table, changes);
            }
        }
        pair
    }

    fn all_faster(&mut self, changes: &str) {
        let percent = changes.split(' ').next().unwrap().parse::<f64>().unwrap();
        for network in &mut self.networks {
            let to = number(network, "bandwidth_mbit") * percent / 100.0;
            network.insert("bandwidth_mbit".into(), format!("{to}"));
        }
    }
}

fn number(table: &Table, key: &str) -> f64 {
    // What is left out is half a millisecond: `round_trip_max_ms`.
    table.get(key).map_or(0.5, |value| value.parse().unwrap())
}

/// `key = value instead of ...` taken apart.
fn assignment(change: &str) -> (&str, &str) {
    let to = change.split(" instead of ").next().unwrap_or(change);
    to.split_once(" = ").unwrap_or_else(|| panic!("{change}"))
}

/// Writes `changes` of a channel or a network into its table.
fn write(table: &mut Table, changes: &str) {
    if let Some(network) = changes.strip_prefix("on network ") {
        let network = network.trim_end_matches(" too");
        let list = table.get("networks").cloned().unwrap_or_default();
        let list = list.replace(']', &format!(", \"{network}\"]"));
        table.insert("networks".into(), list);
        return;
    }
    for change in changes.split(", with ") {
        let to = change.split(" instead of ").next().unwrap_or(change);
        let mut waiting = Vec::new();
        for part in to.split(" and ") {
            let (key, value) = part.split_once(" = ").unzip();
            waiting.push(key.unwrap_or(part));
            if let Some(value) = value {
                for key in waiting.drain(..) {
                    table.insert(key.into(), value.into());
                }
            }
        }
    }
}

/// What is written of one channel's margin, and what follows from it.
fn at_the_margin(
    pair: &Pair,
    at: usize,
    (channel, room): (&Channel, &ChannelHeadroom),
) -> [Pair; 3] {
    let with = |key: &str, value: String| {
        let mut changed = pair.clone();
        changed.channels[at].insert(key.into(), value);
        changed
    };
    let mut shorter = with("period_ms", units::millis(room.period_ns));
    // The table tells a deadline only where it is not as it is.
    if room.period_deadline_ns != channel.deadline.as_nanos() {
        let deadline = units::millis(room.period_deadline_ns);
        shorter.channels[at].insert("deadline_ms".into(), deadline);
    }
    let mut larger = with("size", words::configured(room.size).to_string());
    if room.size_budget > channel.budget {
        larger.channels[at].insert("retransmissions".into(), room.size_budget.to_string());
    }
    let sooner = with("deadline_ms", units::millis(room.deadline_ns));
    [shorter, larger, sooner]
}

/// All deadlines shorter by what the text says is to spare.
fn all_sooner(pair: &Pair, scenario: &Scenario, text: &str) -> Pair {
    let said = text
        .split("all deadlines be ")
        .nth(1)
        .and_then(|rest| rest.split(" shorter").next())
        .unwrap();
    let (digits, unit) = said.split_once(' ').unwrap_or((said, "ns"));
    let unit = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => 1.0,
    };
    let spare = (digits.parse::<f64>().unwrap() * unit).round() as u64;
    let mut changed = pair.clone();
    for (table, channel) in changed.channels.iter_mut().zip(&scenario.channels) {
        let deadline = channel.deadline.as_nanos() - spare;
        table.insert("deadline_ms".into(), units::millis(deadline));
    }
    changed
}

/// A value one step further than proposed, where the step is known.
fn a_step_less(scenario: &Scenario, change: Variation) -> Option<Variation> {
    Some(match change {
        Variation::Bandwidth { link, to } => {
            let from = scenario.links[link].bandwidth;
            let to = (to - step(from)).max(from);
            Variation::Bandwidth { link, to }
        }
        Variation::Size { channel, to_bytes } => {
            let from = scenario.channels[channel].size;
            let to_bytes = (to_bytes + step(to_bytes.into()) as u32).min(from);
            Variation::Size { channel, to_bytes }
        }
        Variation::RoundTrip { link, to_ns } => {
            let from = scenario.links[link].round_trip.1.as_nanos();
            let to_ns = (to_ns + step(to_ns)).min(from);
            Variation::RoundTrip { link, to_ns }
        }
        _ => return None,
    })
}

/// Whether everything that is told of `pair` is so; how many proposals said that an expiry goes with them.
fn judge(pair: &Pair) -> usize {
    let report = pair.report();
    let sender = &report.plan.senders[0];
    let mut with_expiry = 0;
    for advice in &report.advice[0] {
        let said = words::advice(sender, advice);
        let changed = pair.followed(&said);
        assert_eq!(
            changed.verdict(),
            Ok(Verdict::Yes),
            "{said}\n{}",
            changed.text()
        );
        with_expiry += usize::from(said.contains("expiry_ms"));
        if let Some(less) = a_step_less(&sender.scenario, advice.change) {
            let less = bumpless_plan::advice::Advice {
                change: less,
                ..*advice
            };
            let said = words::advice(sender, &less);
            let verdict = pair.followed(&said).verdict();
            assert_ne!(
                verdict,
                Ok(Verdict::Yes),
                "{said} is enough\n{}",
                pair.text()
            );
        }
    }
    if let Some(room) = &report.headroom[0] {
        let channels = sender.scenario.channels.iter().zip(&room.channels);
        for (at, channel) in channels.enumerate() {
            for changed in at_the_margin(pair, at, channel) {
                assert_eq!(
                    changed.verdict(),
                    Ok(Verdict::Yes),
                    "{}\n{}",
                    pair.text(),
                    changed.text()
                );
            }
        }
        let sooner = all_sooner(pair, &sender.scenario, &report.text());
        // A deadline of less than 0.1 ms is not one of a configuration.
        if let Ok(verdict) = sooner.verdict() {
            assert_eq!(verdict, Verdict::Yes, "{}\n{}", pair.text(), sooner.text());
        }
    }
    with_expiry
}

fn network() -> impl Strategy<Value = Table> {
    let bandwidth = prop_oneof![Just(10), Just(100), Just(1000), 5u32..1000];
    let mtu = prop_oneof![Just(576), Just(1500), Just(1500), Just(9000)];
    let round_trip = prop_oneof![Just(None), (1u32..4000).prop_map(Some)];
    (bandwidth, mtu, round_trip).prop_map(|(bandwidth, mtu, round_trip)| {
        let mut fields = table(&[
            ("bandwidth_mbit", bandwidth.to_string()),
            ("mtu", mtu.to_string()),
        ]);
        if let Some(micros) = round_trip {
            let millis = f64::from(micros) / 1e3;
            fields.insert("round_trip_max_ms".into(), millis.to_string());
        }
        fields
    })
}

fn channel() -> impl Strategy<Value = Table> {
    let size = prop_oneof![100u32..5_000, 5_000u32..500_000];
    let period = prop_oneof![Just(10_000u32), Just(100_000), 4_000u32..1_000_000];
    let deadline = prop_oneof![Just(None), (30u32..=100).prop_map(Some)];
    let budget = prop_oneof![Just(None), (0u32..4).prop_map(Some)];
    let accepted = prop_oneof![Just(None), Just(Some("1e-6")), Just(Some("0.1"))];
    let distribution = prop_oneof![Just("replicate"), Just("replicate"), Just("spread")];
    (size, period, deadline, budget, accepted, distribution).prop_map(
        |(size, period, deadline, budget, accepted, distribution)| {
            let millis = |micros: u32| format!("{}", f64::from(micros) / 1e3);
            let mut fields = table(&[
                ("size", size.to_string()),
                ("period_ms", millis(period)),
                ("distribution", format!("{distribution:?}")),
            ]);
            if let Some(percent) = deadline {
                let deadline = millis(period / 100 * percent);
                fields.insert("deadline_ms".into(), deadline);
            }
            if let Some(budget) = budget {
                fields.insert("retransmissions".into(), budget.to_string());
            }
            if let Some(accepted) = accepted {
                fields.insert("accepted_loss_per_year".into(), accepted.into());
            }
            fields
        },
    )
}

fn pairs() -> impl Strategy<Value = Pair> {
    let networks = prop::collection::vec(network(), 1..4);
    let channels = prop::collection::vec((channel(), any::<bool>()), 1..4);
    let jitter = prop_oneof![Just("0"), Just("0.25"), Just("1.5")];
    (networks, channels, jitter).prop_map(|(networks, channels, jitter)| {
        let all: Vec<String> = (0..networks.len()).map(|at| format!("\"n{at}\"")).collect();
        let channels = channels.into_iter().map(|(mut fields, everywhere)| {
            let list = if everywhere {
                all.join(", ")
            } else {
                all[0].clone()
            };
            fields.insert("networks".into(), format!("[{list}]"));
            fields
        });
        Pair {
            plan: table(&[("jitter_ms", jitter.into())]),
            transfer: Table::new(),
            channels: channels.collect(),
            networks,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn proposals_and_margins_written_into_the_configuration_are_a_yes(pair in pairs()) {
        // A state that does not fit alone is no configuration.
        prop_assume!(pair.config().is_ok());
        judge(&pair);
    }
}

/// Of one channel the deadline is left out, of the other the expiry is nearly the shortest that is possible.
fn two_channels(one: u32, two: u32) -> Pair {
    let fields = |size: u32, times: &[(&str, &str)]| {
        let mut fields = table(&[("size", size.to_string())]);
        let times = times.iter().map(|(key, ms)| ((*key).into(), (*ms).into()));
        fields.extend(times);
        fields
    };
    let times = [
        ("period_ms", "100"),
        ("deadline_ms", "60"),
        ("expiry_ms", "290"),
    ];
    Pair {
        networks: vec![table(&[("bandwidth_mbit", "100".into())])],
        channels: vec![fields(one, &[("period_ms", "50")]), fields(two, &times)],
        ..Pair::default()
    }
}

#[test]
fn an_expiry_that_would_become_too_short_is_told_with_the_change() {
    let sizes = [
        (200_000, 300_000),
        (280_000, 100_000),
        (50_000, 600_000),
        (250_000, 550_000),
    ];
    let told = sizes.map(|(one, two)| judge(&two_channels(one, two)));
    assert!(told.iter().sum::<usize>() > 0, "{told:?}");
}

/// One channel on one network, which answers within `round_trip_ms`.
fn alone(bandwidth_mbit: u32, round_trip_ms: f64, size: u32, period_ms: u32) -> Pair {
    let network = [
        ("bandwidth_mbit", bandwidth_mbit.to_string()),
        ("round_trip_max_ms", round_trip_ms.to_string()),
    ];
    let channel = [
        ("size", size.to_string()),
        ("period_ms", period_ms.to_string()),
    ];
    Pair {
        networks: vec![table(&network)],
        channels: vec![table(&channel)],
        ..Pair::default()
    }
}

#[test]
fn what_is_to_spare_is_rounded_down() {
    // The next three digits above what is to spare would be a no.
    let pair = alone(10_000, 0.5, 34_700, 1_000);
    let report = pair.report();
    let spare = report.headroom[0].as_ref().map(|room| room.spare_ns);
    let finer = spare.map(|spare| spare % step(spare) * 2 / step(spare));
    assert_eq!(finer, Some(1), "{spare:?} would be rounded up");
    judge(&pair);
}

#[test]
fn more_packets_in_flight_than_a_configuration_takes_are_not_proposed() {
    let mut pair = alone(10_000, 60.0, 50_000_000, 1_000);
    pair.channels[0].insert("deadline_ms".into(), "1000".into());
    let report = pair.report();
    let reasons = words::of_sender(&report.plan.senders[0]);
    let limit = |reason: &String| reason.ends_with("may be 32768 at most");
    assert!(reasons.iter().any(limit), "{reasons:?}");
    judge(&pair);
}

#[test]
fn a_round_trip_far_below_the_stated_one_is_found() {
    let pair = alone(1_000, 1_000.0, 100, 10);
    let report = pair.report();
    let is_round_trip = |change| matches!(change, Variation::RoundTrips { .. });
    let mut changes = report.advice[0].iter().map(|advice| advice.change);
    assert!(changes.any(is_round_trip), "{:?}", report.advice);
    judge(&pair);
}

#[test]
fn the_bandwidth_proposed_does_not_depend_on_where_it_starts() {
    // The networks' packets differ: those of one fill its frames, those of the other do not.
    let proposed = |bandwidth: u32| {
        let mut pair = two_channels(100_000, 150_000);
        pair.networks.push(table(&[
            ("bandwidth_mbit", bandwidth.to_string()),
            ("mtu", "9000".into()),
        ]));
        pair.networks[0].insert("bandwidth_mbit".into(), "900".into());
        for channel in &mut pair.channels {
            channel.insert("period_ms".into(), "40".into());
            channel.insert("deadline_ms".into(), "40".into());
        }
        let report = pair.report();
        let mut changes = report.advice[0].iter().map(|advice| advice.change);
        changes.find_map(|change| match change {
            Variation::Bandwidth { link: 1, to } => Some(to as f64),
            _ => None,
        })
    };
    let all = [55, 60, 70, 80].map(proposed);
    let all: Vec<f64> = all.into_iter().flatten().collect();
    let (least, most) = all
        .iter()
        .fold((f64::MAX, 0.0f64), |(l, m), &x| (l.min(x), m.max(x)));
    assert!(all.len() > 1 && most / least < 1.01, "{all:?}");
}
