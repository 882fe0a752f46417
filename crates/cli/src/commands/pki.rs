//! `bumpless pki`: the authority of a site, and certificates of its nodes.

mod show;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Cause, NodeName, Problem, Role, Wanted, told};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Make a site's authority, issue certificates to nodes with it, and revoke them
///
/// A certificate proves to a node that its partner is who it claims to be. Make one authority for a site with `init`, then a
/// certificate for each node with `issue`. Certificates of another authority do as well, if they have the node's name,
/// NODE.PAIR with a site behind. No command prints a secret. Exit status: 0 done, 1 refused, 2 wrong usage.
#[derive(Debug, Args)]
pub struct Pki {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Init(Init),
    Issue(Issue),
    Revoke(Revoke),
    Show(show::Show),
}

/// Make the authority of a site: a folder with its key, its certificate and an empty list of what it has revoked
///
/// Whoever has the key can make a node of the site out of any computer. Keep the folder where only you can read it, best
/// off the plant's networks: nodes do not need it. A folder that is there and not empty is never overwritten.
#[derive(Debug, Args)]
struct Init {
    /// The folder to make
    #[arg(default_value = "pki")]
    folder: PathBuf,
    /// What the site is called, as in DNS: the last part of its nodes' names. The authority can issue no other names
    #[arg(long, value_name = "NAME", default_value = "site")]
    site: String,
    /// How long the authority lasts, and no certificate can last longer
    #[arg(long, value_name = "N", default_value_t = 7300, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Print the result as JSON (schema bumpless.pki-init/1)
    #[arg(long)]
    json: bool,
}

/// Issue a certificate with a new key to each of some nodes: a folder with all that it needs, to be brought to its computer
///
/// A witness is the node NAME of the pair `witness`, a field device with Modbus/TCP Security the node NAME of the pair `field`. A folder has certificate.pem, key.pem, authority.pem and revoked.pem. One that is there and not empty is never
/// overwritten: to renew a certificate, give another folder with --out and put its files in the place of the old ones.
#[derive(Debug, Args)]
struct Issue {
    /// The nodes as NODE.PAIR, both as in the configuration: left.tank is node left of the pair tank
    #[arg(required = true, value_name = "NODE.PAIR")]
    nodes: Vec<String>,
    /// The folder to make, for one node [default: ./NODE.PAIR for each]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    authority: From,
    /// What the nodes are at field devices, such as operator: the devices say what that may do (Modbus/TCP Security)
    #[arg(long, value_name = "ROLE", value_parser = |text: &str| Role::new(text))]
    role: Option<Role>,
    /// An address of the field device, by which controllers know it if they are not told its name; several times for several
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    /// How long the certificate lasts
    #[arg(long, value_name = "N", default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Print the result as JSON, a line for each node (schema bumpless.pki-issue/1)
    #[arg(long)]
    json: bool,
}

/// Revoke the certificates of a node, or a single one by its serial number
///
/// Nodes refuse what the list revoked.pem in the authority's folder names, as soon as they have that list: copy it to each.
#[derive(Debug, Args)]
struct Revoke {
    /// The node as NODE.PAIR, for all its certificates; or the serial number of one, as `bumpless pki show` prints it
    #[arg(value_name = "NODE|SERIAL")]
    what: String,
    #[command(flatten)]
    authority: From,
    /// Print the result as JSON (schema bumpless.pki-revoke/1)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct From {
    /// The authority's folder, from `bumpless pki init`
    #[arg(long = "authority", value_name = "DIR", default_value = "pki")]
    folder: PathBuf,
}

impl Pki {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (done, json) = match &self.action {
            Action::Init(it) => (it.execute(), it.json),
            Action::Issue(it) => (it.execute(), it.json),
            Action::Revoke(it) => (it.execute(), it.json),
            Action::Show(it) => (it.execute(), it.json),
        };
        done.map_err(|failure| failure.in_json(json))
    }
}

impl Init {
    fn execute(&self) -> Outcome {
        // What has begun is finished: it takes milliseconds.
        stop::stop_flag()?;
        let lifetime = lifetime(self.days);
        let made = Authority::create(&self.folder, &self.site, lifetime, UnixTime::now());
        let made = made.map_err(|problem| failure(&problem))?;
        let (folder, ends) = (self.folder.display(), told(made.certificate().ends));
        output::done(format_args!("the authority in {folder} was made"));
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.pki-init/1",
                "folder": folder.to_string(),
                "site": made.site(),
                "ends": ends,
            }));
        } else {
            let from = match self.folder == Path::new("pki") {
                true => String::new(),
                false => format!(" --authority {folder}"),
            };
            output::print_line(format_args!(
                "{folder} has the authority of the site {} until {ends}\n\
                 Keep it where only you can read it: whoever has its key can make a node out of any computer.\n\
                 Issue a certificate to each node by its name and the pair's, and to each witness, such as\n    \
                 bumpless pki issue left.tank right.tank witness-a.witness{from}",
                made.site()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Issue {
    fn execute(&self) -> Outcome {
        // What has begun is finished: it takes milliseconds.
        stop::stop_flag()?;
        let authority = self.authority.load()?;
        let wanted = self.wanted(&authority)?;
        for (name, out) in &wanted {
            let wanted = Wanted {
                name,
                role: self.role.as_ref(),
                addresses: &self.addresses,
            };
            let issued = authority.issue(wanted, lifetime(self.days), UnixTime::now(), out);
            let issued = issued.map_err(|problem| failure(&problem))?;
            let (out, ends) = (out.display(), told(issued.ends));
            output::done("certificates were issued, which `bumpless pki show` tells");
            if self.json {
                output::print_line(json!({
                    "schema": "bumpless.pki-issue/1",
                    "folder": out.to_string(),
                    "name": issued.name.as_str(),
                    "serial": issued.serial,
                    "role": self.role.as_ref().map(Role::as_str),
                    "addresses": self.addresses,
                    "ends": ends,
                }));
            } else {
                let role = self.role.as_ref();
                let role = role.map_or_else(String::new, |role| format!(", role {role},"));
                output::print_line(format_args!(
                    "{out} has the certificate {} of {}{role} until {ends}",
                    issued.serial, issued.name
                ));
            }
        }
        if !self.json {
            let each =
                |(_, out): &(NodeName, PathBuf)| format!("    scp -rp {} OTHER:\n", out.display());
            output::print_line(format_args!(
                "Bring each folder to its computer by a way that nobody else can read, such as\n\
                 {}and delete it here: it has the node's key.",
                wanted.iter().map(each).collect::<String>()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What each node is called, and its folder. Nothing is issued if one of them cannot be.
    fn wanted(&self, authority: &Authority) -> Result<Vec<(NodeName, PathBuf)>, Failure> {
        if self.out.is_some() && self.nodes.len() > 1 {
            return Err(Failure::usage(
                "--out names the folder of one node; leave it out, or issue one certificate after the other",
            ));
        }
        if !self.addresses.is_empty() && self.nodes.len() > 1 {
            return Err(Failure::usage(
                "--address is of one device; issue one certificate after the other",
            ));
        }
        let mut wanted = Vec::<(NodeName, PathBuf)>::new();
        for text in &self.nodes {
            let name = authority.name(text).map_err(Failure::usage)?;
            if wanted.iter().any(|(other, _)| *other == name) {
                return Err(Failure::usage(format_args!(
                    "{text} is named twice; name each node once"
                )));
            }
            let out = self.out.clone();
            let out = out.unwrap_or_else(|| PathBuf::from(name.short()));
            authority
                .judge_folder(&out)
                .map_err(|problem| failure(&problem))?;
            wanted.push((name, out));
        }
        Ok(wanted)
    }
}

impl Revoke {
    fn execute(&self) -> Outcome {
        // What has begun is finished: it takes milliseconds.
        stop::stop_flag()?;
        let authority = self.authority.load()?;
        let done = authority.revoke(&self.what, UnixTime::now());
        let done = done.map_err(|problem| failure(&problem))?;
        let list = self.authority.folder.join("revoked.pem");
        output::done(format_args!("it was revoked in {}", list.display()));
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.pki-revoke/1",
                "list": list.display().to_string(),
                "number": done.list,
                "revoked": done.serials,
                "revoked_before": done.before,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        for (serials, words) in [
            (&done.serials, "is revoked"),
            (&done.before, "was revoked before"),
        ] {
            for serial in serials {
                output::print_line(format_args!("{serial} {words}"));
            }
        }
        output::print_line(format_args!(
            "It counts on each node that has this list. Copy it into the folder of every node's certificate, such as\n    \
             scp -p {} OTHER:",
            list.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl From {
    fn load(&self) -> Result<Authority, Failure> {
        Authority::load(&self.folder).map_err(|problem| failure(&problem))
    }
}

fn lifetime(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 86_400)
}

/// What cannot be is wrong usage; the rest is refused.
fn failure(problem: &Problem) -> Failure {
    match problem.cause {
        Cause::Name(_) | Cause::Lifetime | Cause::Outlives { .. } | Cause::NotIssued(_) => {
            Failure::usage(problem)
        }
        _ => Failure::refused(problem),
    }
}
