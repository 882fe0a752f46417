//! The pair's configuration, and wrong ones: the demonstration's, on the addresses of the hosts.

use std::path::Path;

use super::hosts::Hosts;
use crate::demo::configuration::{self, GROUP, PERIOD_MS};

/// The pair's key, beside its configuration.
pub const KEY: &str = "quadruple-tank.key";

/// The right file, with control sockets in `directory`.
pub fn right(directory: &Path) -> String {
    format!("{}\n[security]\nkeys = [\"{KEY}\"]\n", plain(directory))
}

fn plain(directory: &Path) -> String {
    let tank = configuration::controller(&[]);
    let addresses = Hosts::addresses();
    let application = configuration::tank_text(addresses.plant, &tank, "");
    configuration::text(directory, &addresses, &application)
}

/// The right file with an application beside the tank whose state fills packets.
pub fn with_full_packets(directory: &Path) -> String {
    right(directory) + &application("ballast", 4, "20 kB")
}

/// The right file of a pair whose messages are open.
pub fn open(directory: &Path) -> String {
    plain(directory) + "\n[security]\npackets = \"open\"\n"
}

fn application(name: &str, channel: u32, size: &str) -> String {
    format!(
        "\n[[application]]\nname = \"{name}\"\ngroup = \"{GROUP}\"\nkind = \"synthetic\"\n\
         channel = {channel}\nperiod_ms = 20\ndeadline_ms = 18\nsize = \"{size}\"\n"
    )
}

/// One value that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The tank's period.
    Period,
    /// One application more.
    Application,
    /// The group has one reference point less.
    References,
    /// The field device has another address.
    Field,
}

impl Wrong {
    /// Every one.
    pub const ALL: [Self; 4] = [
        Self::Period,
        Self::Application,
        Self::References,
        Self::Field,
    ];

    /// Its name in cases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Period => "period",
            Self::Application => "application",
            Self::References => "references",
            Self::Field => "field",
        }
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Period => "period of 11 instead of 10 ms",
            Self::Application => "one application more",
            Self::References => "one reference point less",
            Self::Field => "another field device",
        }
    }

    /// `text` with this mistake in it.
    pub fn spoil(self, text: &str) -> String {
        let plant = Hosts::addresses().plant;
        match self {
            Self::Period => text.replace(
                &format!("period_ms = {PERIOD_MS}\n"),
                &format!("period_ms = {}\n", PERIOD_MS + 1),
            ),
            Self::Application => text.to_owned() + &application("stray", 5, "4 kB"),
            Self::References => text.replace("\"witness-A\", \"witness-B\"", "\"witness-A\""),
            Self::Field => text.replace(
                &plant.to_string(),
                &format!("{}:{}", plant.ip(), plant.port() + 1),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_config::Config;

    use super::*;

    #[test]
    fn each_wrong_file_is_one_that_a_node_starts_with_and_no_two_agree() {
        let directory = Path::new("/run/pair");
        let right = right(directory);
        let mut files = vec![right.clone(), with_full_packets(directory), open(directory)];
        files.extend(Wrong::ALL.map(|wrong| wrong.spoil(&right)));
        let mut fingerprints: Vec<_> = files
            .iter()
            .map(|text| Config::parse(text, "pair.toml").unwrap().fingerprint())
            .collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), files.len());
    }
}
