//! The file of a pair that is spread over sites, with times that are to fit.

use std::fmt::Write;

use bumpless_base::Duration;
use bumpless_plan::distance::Sizes;

/// Applications, one for each way to commit.
pub const APPLICATIONS: [(&str, &str); 2] = [("careful", "before_output"), ("swift", "async")];

/// How far apart everybody is, there and back at most.
#[derive(Clone, Debug)]
pub struct Apart {
    /// By network: between the nodes, and from either of them to the witness that is on it.
    pub networks: Vec<(Duration, Duration)>,
    /// To field devices.
    pub field: Duration,
}

impl Apart {
    /// The pair's configuration with these times.
    pub fn text(&self, sizes: &Sizes) -> String {
        let ms = |span: Duration| span.as_millis_f64();
        let mut text = format!(
            "[pair]\nname = \"sites\"\n[security]\nkeys = [\"sites.key\"]\n[timing]\nheartbeat_ms = {}\nlease_ms = {}\nstart_wait_ms = {}\n",
            ms(sizes.heartbeat),
            ms(sizes.lease),
            ms(sizes.start_wait)
        );
        let count = self.networks.len();
        let addresses = |host: u8| {
            let each = (0..count).map(|at| format!("n{at} = \"10.0.{at}.{host}:4700\""));
            each.collect::<Vec<_>>().join(", ")
        };
        for (at, (pair, witness)) in self.networks.iter().enumerate() {
            let _ = write!(
                text,
                "[[network]]\nname = \"n{at}\"\nbandwidth_mbit = 1000\nround_trip_max_ms = {}\n\
                 [[reference]]\nname = \"w{at}\"\nkind = \"witness\"\nnetwork = \"n{at}\"\naddress = \"10.0.{at}.9:4710\"\n\
                 round_trip_max_ms = {}\n",
                ms(*pair),
                ms(*witness)
            );
        }
        for (host, node) in (1..).zip(["left", "right"]) {
            let _ = writeln!(
                text,
                "[[node]]\nname = \"{node}\"\naddresses = {{ {} }}",
                addresses(host)
            );
        }
        let references: Vec<_> = (0..count).map(|at| format!("\"w{at}\"")).collect();
        let references = references.join(", ");
        let _ = writeln!(
            text,
            "[[group]]\nname = \"pair\"\nnodes = [\"left\", \"right\"]\nreferences = [{references}]"
        );
        for (channel, (name, commit)) in (1..).zip(APPLICATIONS) {
            let _ = write!(
                text,
                "[[application]]\nname = \"{name}\"\ngroup = \"pair\"\nkind = \"quadruple_tank\"\nchannel = {channel}\n\
                 period_ms = {}\ndeadline_ms = {}\ncommit = \"{commit}\"\n[application.field]\naddress = \"10.0.9.{channel}:502\"\n\
                 timeout_ms = {timeout}\nround_trip_max_ms = {field}\n",
                ms(sizes.period),
                ms(sizes.deadline),
                // Below the period, as long as that is not long enough for it.
                timeout = (2.0 * ms(self.field) + 1.0).min(ms(sizes.period) * 0.9),
                field = ms(self.field),
            );
        }
        text
    }
}
