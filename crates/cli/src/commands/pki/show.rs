//! `bumpless pki show`: what stands in a file.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Certificate, Item, RevocationList, Role, told};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// Tell what stands in a file with certificates, a private key or a revocation list
///
/// Of a key it tells only to which certificates it belongs: those with the same key identifier.
#[derive(Debug, Args)]
pub struct Show {
    /// The file, in PEM
    file: PathBuf,
    /// Print the result as JSON (schema bumpless.pki-show/1)
    #[arg(long)]
    pub json: bool,
}

impl Show {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let items = bumpless_pki::show(&self.file).map_err(Failure::refused)?;
        let now = UnixTime::now();
        if self.json {
            let items: Vec<_> = items.iter().map(|item| item_json(item, now)).collect();
            let file = self.file.display().to_string();
            output::print_line(
                json!({"schema": "bumpless.pki-show/1", "file": file, "items": items}),
            );
        } else {
            for item in &items {
                output::print_line(item_text(item, now));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The purposes that a node's certificate has, by object identifier.
const PURPOSES: [(&str, &str); 2] = [
    ("1.3.6.1.5.5.7.3.1", "TLS server"),
    ("1.3.6.1.5.5.7.3.2", "TLS client"),
];

fn purpose(identifier: &str) -> &str {
    let found = PURPOSES.iter().find(|(it, _)| *it == identifier);
    found.map_or(identifier, |(_, name)| name)
}

fn state(certificate: &Certificate, now: UnixTime) -> &'static str {
    match () {
        () if now > certificate.ends => "expired",
        () if now < certificate.begins => "not valid yet",
        () => "valid",
    }
}

fn item_text(item: &Item, now: UnixTime) -> String {
    match item {
        Item::Certificate(it) if it.authority => authority_text(it, now),
        Item::Certificate(it) => node_text(it, now),
        Item::Key(id) => format!("private key\n  key      {id}"),
        Item::List(list) => list_text(list),
    }
}

fn node_text(it: &Certificate, now: UnixTime) -> String {
    let names = match &it.names[..] {
        [] => "nobody that nodes would know".into(),
        names => names.join(", "),
    };
    let purposes = it.purposes.as_ref().map_or("anything".into(), |all| {
        let all: Vec<_> = all.iter().map(|it| purpose(it)).collect();
        all.join(", ")
    });
    let signs = if it.signs {
        ""
    } else {
        ", but not for signatures"
    };
    let addresses: Vec<_> = it.addresses.iter().map(ToString::to_string).collect();
    let addresses = match addresses.is_empty() {
        true => String::new(),
        false => format!("\n  at       {}", addresses.join(", ")),
    };
    let role = it.role.as_ref();
    let role = role.map_or_else(String::new, |role| format!("\n  role     {role}"));
    format!(
        "certificate of {names}{addresses}\n{}\n  for      {purposes}{signs}{role}\n  key      {}",
        origin_text(it, now),
        it.key_id()
    )
}

fn authority_text(it: &Certificate, now: UnixTime) -> String {
    let sites = match &it.may_issue[..] {
        [] => "any names".into(),
        sites => format!("names that end in {}", sites.join(" or ")),
    };
    format!(
        "certificate of the authority {}\n{}\n  for      {sites}\n  key      {}",
        it.subject,
        origin_text(it, now),
        it.key_id()
    )
}

fn origin_text(it: &Certificate, now: UnixTime) -> String {
    let (begins, ends) = (told(it.begins), told(it.ends));
    format!(
        "  serial   {}\n  issuer   {}\n  lasts    from {begins} to {ends}: {}",
        it.serial,
        it.issuer,
        state(it, now)
    )
}

fn list_text(list: &RevocationList) -> String {
    let number = list
        .number
        .map_or(String::new(), |number| format!(" {number}"));
    let renewed = list.renewed.map_or("never".into(), told);
    let entries = list.entries.iter();
    let entries: Vec<_> = entries
        .map(|it| format!("  revoked  {} since {}", it.serial, told(it.since)))
        .collect();
    let entries = match entries.is_empty() {
        true => "  revoked  nothing".into(),
        false => entries.join("\n"),
    };
    format!(
        "revocation list{number}\n  issuer   {}\n  made     {}\n  renewed  {renewed} at the latest\n{entries}",
        list.issuer,
        told(list.made)
    )
}

fn item_json(item: &Item, now: UnixTime) -> Value {
    match item {
        Item::Certificate(it) => json!({
            "kind": "certificate",
            "authority": it.authority,
            "names": it.names,
            "addresses": it.addresses,
            "role": it.role.as_ref().map(Role::as_str),
            "may_issue": it.may_issue,
            "subject": it.subject,
            "issuer": it.issuer,
            "serial": it.serial,
            "begins": told(it.begins),
            "ends": told(it.ends),
            "state": state(it, now).replace(' ', "_"),
            "signs": it.signs,
            "purposes": it.purposes,
            "key": it.key_id(),
        }),
        Item::Key(id) => json!({"kind": "private_key", "key": id}),
        Item::List(list) => json!({
            "kind": "revocation_list",
            "issuer": list.issuer,
            "number": list.number,
            "made": told(list.made),
            "renewed": list.renewed.map(told),
            "revoked": list.entries.iter().map(|it| json!({"serial": it.serial, "since": told(it.since)})).collect::<Vec<_>>(),
        }),
    }
}
