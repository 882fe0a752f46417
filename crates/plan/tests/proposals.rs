//! What a plan proposes is written into the configuration word for word, and then it is a yes.

use bumpless_config::Config;
use bumpless_plan::report::{Report, words};
use bumpless_plan::{Verdict, plan};

/// Two channels: of one the deadline is left out, of the other the expiry is the shortest that is possible.
fn configuration(one: u32, two: u32) -> String {
    let start = "[pair]\nname = \"p\"\n\
        [[network]]\nname = \"A\"\nbandwidth_mbit = 100\n\
        [[node]]\nname = \"left\"\naddresses = { A = \"127.0.1.1:4700\" }\n\
        [[node]]\nname = \"right\"\naddresses = { A = \"127.0.1.2:4700\" }\n\
        [[reference]]\nname = \"w\"\nkind = \"witness\"\nnetwork = \"A\"\naddress = \"127.0.1.9:4710\"\n\
        [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nreferences = [\"w\"]\n";
    let application = |name: &str, channel: u8, size: u32, times: &str| {
        format!(
            "[[application]]\nname = \"{name}\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = {channel}\n\
             size = {size}\n{times}\n"
        )
    };
    let one = application("one", 1, one, "period_ms = 50");
    let two = application(
        "two",
        2,
        two,
        "period_ms = 100\ndeadline_ms = 60\nexpiry_ms = 290",
    );
    format!("{start}{one}{two}")
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let config = Config::parse(text, "t").map_err(|problems| format!("{problems:#?}"))?;
    Ok(plan(&config, None).verdict)
}

fn report(text: &str) -> Report {
    let config = Config::parse(text, "t").unwrap_or_else(|problems| panic!("{problems:#?}"));
    Report::new("p", plan(&config, None), |_, _| ())
}

/// `text` with `key` of the table whose name is `name` set to `value`.
fn set(text: &str, name: &str, key: &str, value: &str) -> String {
    let (before, table) = text
        .split_once(&format!("name = \"{name}\"\n"))
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    let end = table.find("[[").unwrap_or(table.len());
    let (table, after) = table.split_at(end);
    let others = table.lines().filter(|line| !line.starts_with(key));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    format!("{before}name = \"{name}\"\n{others}{key} = {value}\n{after}")
}

/// `text` changed as the sentence `proposal` says; `None` for one that is no value of a channel or a network.
fn followed(text: &str, proposal: &str) -> Option<String> {
    let (place, changes) = proposal.split_once(": ")?;
    let name = place.trim_start_matches("network ");
    let mut text = text.to_owned();
    for change in changes.split(", with ") {
        let (assignments, _) = change.split_once(" instead of ")?;
        let mut waiting = Vec::new();
        for assignment in assignments.split(" and ") {
            let (key, value) = assignment.split_once(" = ").unzip();
            waiting.push(key.unwrap_or(assignment));
            if let Some(value) = value {
                for key in waiting.drain(..) {
                    text = set(&text, name, key, value);
                }
            }
        }
    }
    Some(text)
}

#[test]
fn a_proposal_written_into_the_configuration_word_for_word_makes_it_a_yes() {
    let mut longer = 0;
    for (one, two) in [
        (200_000, 300_000),
        (280_000, 100_000),
        (50_000, 600_000),
        (250_000, 550_000),
    ] {
        let text = configuration(one, two);
        let report = report(&text);
        assert_eq!(report.plan.verdict, Verdict::No, "{one} {two}");
        let sender = &report.plan.senders[0];
        let mut tried = 0;
        for advice in &report.advice[0] {
            let said = words::advice(sender, advice);
            let Some(changed) = followed(&text, &said) else {
                continue;
            };
            assert_eq!(verdict(&changed), Ok(Verdict::Yes), "{said}\n{changed}");
            longer += usize::from(said.contains("expiry_ms"));
            tried += 1;
        }
        assert!(tried > 2, "{one} {two}: {tried} of {:?}", report.advice[0]);
    }
    assert!(longer > 0);
}

#[test]
fn the_margins_written_into_the_configuration_leave_a_yes() {
    let text = configuration(50_000, 150_000);
    let report = report(&text);
    let (sender, room) = (&report.plan.senders[0], &report.headroom[0]);
    let channels = &room.as_ref().unwrap().channels;
    for (channel, room) in sender.scenario.channels.iter().zip(channels) {
        let ms = |nanos: u64| format!("{}", nanos as f64 / 1e6);
        let name = &channel.name;
        let mut shorter = set(&text, name, "period_ms", &ms(room.period_ns));
        if room.period_deadline_ns == channel.deadline.as_nanos() {
            shorter = set(&shorter, name, "deadline_ms", &ms(room.period_deadline_ns));
        }
        let sooner = set(&text, name, "deadline_ms", &ms(room.deadline_ns));
        let size = words::configured(room.size).to_string();
        for changed in [shorter, sooner, set(&text, name, "size", &size)] {
            assert_eq!(verdict(&changed), Ok(Verdict::Yes), "{changed}");
        }
    }
}
