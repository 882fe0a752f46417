//! `bumpless check`: every error of a configuration at once, or the sample file.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_config::{Application, ApplicationKind, Config, Program, Security, Weakness};
use bumpless_node::certificates::{self, IdentityError, Missing};
use bumpless_node::field_drivers::{PasswordProblem, password_problems};
use bumpless_node::field_identity;
use bumpless_node::key_file::{self, KeyFileError};
use bumpless_node::program::{retained, retains_in_memory_alone};
use bumpless_node::state_security;
use bumpless_pki::{Identity, told};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Outcome, placement, reception};

/// Check a configuration and print every error at once, with line and remedy
///
/// Files of keys and passwords that a node would miss on this computer are told too, and are no error: they need not be
/// where a configuration is written.
#[derive(Debug, Args)]
pub struct Check {
    /// The pair's configuration file
    #[arg(required_unless_present = "sample")]
    config: Option<PathBuf>,
    /// Print a sample configuration in which every field is explained, and exit
    #[arg(long, conflicts_with_all = ["config", "json"])]
    sample: bool,
    /// Print the result as JSON (schema bumpless.check/1)
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let Some(path) = self.config.filter(|_| !self.sample) else {
            output::print_line(bumpless_config::sample().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        let config = output::load(&path, self.json)?;
        let fingerprint = format!("{:016x}", config.fingerprint());
        let keys = key_file::for_config(&config.security, key_file::folder_of(Some(&path)));
        let (keys, mut problems) = match keys {
            Ok(keys) => (keys, Vec::new()),
            Err(problems) => (None, problems),
        };
        for of_states in state_security::key_problems(&config, key_file::folder_of(Some(&path))) {
            if problems.iter().all(|known| known.path != of_states.path) {
                problems.push(of_states);
            }
        }
        let key = keys.map(|keys| format!("{:04x}", keys.sealing()));
        let found = match &config.security {
            Security::Certificates(given) => {
                let folder = key_file::folder_of(Some(&path));
                Some(certificates::identities(given, &config, folder))
            }
            _ => None,
        };
        let folder = key_file::folder_of(Some(&path));
        let of_fields = field_identity::folders(&config);
        let of_fields = of_fields.iter();
        let of_fields =
            of_fields.flat_map(|given| certificates::identities(given, &config, folder));
        let found: Vec<_> = found.into_iter().flatten().chain(of_fields).collect();
        let identities = &found[..];
        let passwords = password_problems(&config, folder);
        if self.json {
            let problems: Vec<_> = problems.iter().map(problem).collect();
            output::print_line(json!({
                "schema": "bumpless.check/1",
                "ok": true,
                "pair": config.pair,
                "fingerprint": fingerprint,
                "problems": [],
                "weaknesses": weaknesses(&config),
                "key": key,
                "reception": reception::of_nodes(&config),
                "interfaces": placement::of_nodes(&config),
                "key_problems": problems,
                "password_problems": passwords.iter().map(password_problem).collect::<Vec<_>>(),
                "programs": programs(&config).map(|(settings, program)| json!({
                    "application": settings.name,
                    "kind": program.host.name(),
                    "file": program.file.display().to_string(),
                    "sha256": program.sha256_hex(),
                    "retained": retained_names(settings),
                })).collect::<Vec<_>>(),
                "certificates": identities.iter().filter_map(certificate).collect::<Vec<_>>(),
                "certificates_missing": nowhere(identities).map(Missing::commands),
                "certificate_problems": identities.iter().flat_map(certificate_problems).collect::<Vec<_>>(),
            }));
            return Ok(ExitCode::SUCCESS);
        }
        for weakness in weaknesses(&config) {
            output::print_line(format_args!("weakness: {weakness}"));
        }
        for problem in &problems {
            output::print_line(format_args!("this computer cannot run it: {problem}"));
        }
        for problem in &passwords {
            output::print_line(format_args!("this computer cannot log in: {problem}"));
        }
        for (node, identity) in identities {
            if let Err(IdentityError::Wrong(problems)) = identity {
                for problem in &problems.0 {
                    output::print_line(format_args!("this computer cannot run {node}: {problem}"));
                }
            }
        }
        output::print_line(format_args!(
            "{} is valid: pair '{}', {} nodes, {} networks, {} applications, fingerprint {fingerprint}",
            path.display(),
            config.pair,
            config.nodes.len(),
            config.networks.len(),
            config.applications.len(),
        ));
        for (settings, program) in programs(&config) {
            let name = &settings.name;
            output::print_line(format_args!(
                "program of '{name}': {} ({}), SHA-256 {}, which must be the same on every computer of the pair",
                program.file.display(),
                program.host.name(),
                program.sha256_hex()
            ));
            let retained = retained_names(settings);
            if !retained.is_empty() {
                output::print_line(format_args!("'{name}' retains {}", retained.join(", ")));
            }
        }
        if let Some(key) = key {
            output::print_line(format_args!(
                "messages are sealed with the key {key}, which must be the same on every computer of the pair"
            ));
        }
        for (node, identity) in identities {
            if let Ok(identity) = identity {
                let (name, ends) = (identity.name(), told(identity.certificate().ends));
                output::print_line(format_args!(
                    "{node} has the certificate of {name} here, until {ends}"
                ));
            }
        }
        if let Some(missing) = nowhere(identities) {
            output::print_line(format_args!(
                "no node has a certificate here, and where one runs, it needs one; {}",
                missing.remedy()
            ));
        }
        reception::lines(&config)
            .iter()
            .for_each(output::print_line);
        placement::lines(&config)
            .iter()
            .for_each(output::print_line);
        output::print_line("`bumpless plan` says whether every state can be in time");
        Ok(ExitCode::SUCCESS)
    }
}

/// The programs of users, with whose they are.
fn programs(config: &Config) -> impl Iterator<Item = (&Application, &Program)> {
    config.applications.iter().filter_map(|it| match &it.kind {
        ApplicationKind::Program(program) => Some((it, program.as_ref())),
        _ => None,
    })
}

/// Names of the variables that the application's program retains. One that cannot be read was refused with the
/// configuration.
fn retained_names(settings: &Application) -> Vec<String> {
    let table = retained(settings).unwrap_or_default();
    let variables = table.variables().iter();
    variables.map(|it| it.name.clone()).collect()
}

/// What weakens the pair: as its configuration says, and as its programs do.
fn weaknesses(config: &Config) -> Vec<Weakness> {
    let of_programs = config
        .applications
        .iter()
        .filter_map(retains_in_memory_alone);
    config
        .weaknesses
        .iter()
        .cloned()
        .chain(of_programs)
        .collect()
}

type Found = (String, Result<Identity, IdentityError>);

/// What is missing, if no node has a certificate here: on a controller, one of them has.
fn nowhere(identities: &[Found]) -> Option<&Missing> {
    let mut missing = identities.iter().map(|(_, identity)| match identity {
        Err(IdentityError::Missing(missing)) => Some(missing),
        _ => None,
    });
    let first = missing.next()??;
    missing.all(|it| it.is_some()).then_some(first)
}

fn certificate((node, identity): &Found) -> Option<Value> {
    let identity = identity.as_ref().ok()?;
    let ends = told(identity.certificate().ends);
    Some(json!({"node": node, "name": identity.name().as_str(), "ends": ends}))
}

fn certificate_problems((node, identity): &Found) -> Vec<Value> {
    let Err(IdentityError::Wrong(problems)) = identity else {
        return Vec::new();
    };
    let told = problems.0.iter().map(|it| {
        let file = it.path.display().to_string();
        json!({"node": node, "file": file, "wrong": it.wrong(), "right": it.remedy()})
    });
    told.collect()
}

fn problem(error: &KeyFileError) -> Value {
    let file = error.path.display().to_string();
    json!({"file": file, "wrong": error.wrong(), "right": error.remedy()})
}

fn password_problem(of: &PasswordProblem) -> Value {
    let file = of.path.display().to_string();
    json!({"device": of.device, "file": file, "wrong": of.wrong(), "right": of.remedy()})
}
