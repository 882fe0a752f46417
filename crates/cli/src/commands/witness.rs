//! `bumpless witness`: the reference point that leases the primary role.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_net_linux::secrets;
use bumpless_node::witness::{self, Certified, WitnessOptions};
use clap::Args;

use crate::output::{Failure, Outcome};
use crate::stop;

/// Run a reference point that leases the primary role
///
/// Serves any number of pairs. Run one on each network, on computers that are neither controller.
/// After a start it grants nothing for one longest lease, since it may have promised before.
/// Ends as `bumpless run` does, also when its terminal is closed; start it by a service manager or with nohup.
#[derive(Debug, Args)]
pub struct Witness {
    /// Address and UDP port to answer on; give several for several networks
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    listen: Vec<SocketAddr>,
    /// File with the key of a pair (from `bumpless key new`), called PAIR.key, or else given as PAIR=FILE
    ///
    /// Give one for each pair, and both during a change of keys. Whoever has the key is served for that pair alone.
    #[arg(long = "key", value_name = "FILE", value_parser = pair_and_file)]
    keys: Vec<(String, PathBuf)>,
    /// What this witness is called, in its certificate and in the configurations of pairs with certificates
    ///
    /// Give one for all addresses, or one for each: the first name is that of the first --listen, and so on. Keys are
    /// agreed on over TLS, on the TCP port of the same number.
    #[arg(long = "name", value_name = "NAME", requires = "nodes")]
    names: Vec<String>,
    /// Folder with its certificates, each in a folder called NAME.witness as `bumpless pki issue` makes it
    #[arg(long, value_name = "FOLDER", default_value = ".", requires = "names")]
    certificates: PathBuf,
    /// A node that is served by its certificate; give all nodes of a pair
    #[arg(long = "serve", value_name = "NODE.PAIR", requires = "names")]
    nodes: Vec<String>,
    /// Answer unprotected messages too; without --key and --name these alone
    #[arg(long)]
    open: bool,
    /// Longest lease that a pair may ask for, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    longest_lease_ms: u32,
    /// Run at this real-time priority, 1 to 99, where the system permits it
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,
    /// Print changes of holder and what is counted as JSON lines (schema bumpless.witness/1)
    #[arg(long)]
    json: bool,
}

/// The pair's name and the file of `text`.
fn pair_and_file(text: &str) -> Result<(String, PathBuf), String> {
    if let Some((pair, file)) = text.split_once('=') {
        return Ok((pair.to_owned(), file.into()));
    }
    let path = PathBuf::from(text);
    let name = path.file_stem().and_then(|name| name.to_str());
    name.map(|name| (name.to_owned(), path.clone()))
        .ok_or_else(|| "is no file's name; give PAIR.key or PAIR=FILE".into())
}

impl Witness {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        secrets::keep_out_of_core_dumps().map_err(Failure::refused)?;
        if self.names.len() > 1 && self.names.len() != self.listen.len() {
            return Err(Failure::usage(format_args!(
                "there are {} names for {} addresses: give one --name for all, or one for each --listen in the same order",
                self.names.len(),
                self.listen.len()
            )));
        }
        let certified = (!self.names.is_empty()).then_some(Certified {
            folder: self.certificates,
            names: self.names,
            nodes: self.nodes,
        });
        if self.keys.is_empty() && certified.is_none() && !self.open {
            return Err(Failure::usage(
                "a witness needs to know what protects its pairs: give the key of each pair with --key FILE (the file \
                 that its nodes have, from `bumpless key new`), the name of its certificate with --name NAME (from `bumpless \
                 pki issue NAME.witness`) and whom to serve with --serve NODE.PAIR, or --open for pairs with packets = \"open\"",
            ));
        }
        let options = WitnessOptions {
            keys: self.keys,
            certified,
            open: self.open,
            listen: self.listen,
            longest_lease: bumpless_base::Duration::from_millis(self.longest_lease_ms.into()),
            priority: self.priority,
            json: self.json,
            stop: stop::stop_flag()?,
        };
        witness::run(&options).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}
