//! Shows one node of a pair as an OPC UA server: role, redundancy, links, applications and counters, read only, with the
//! ServiceLevel and the nodes of OPC UA's server redundancy (spec/opcua.md).
//!
//! It is a process of its own beside the node and asks at the node's control socket as any other program may. The node
//! knows nothing of it and waits for nothing of it.
//!
//! `bumpless-opcua field` is another thing: the field driver of a node, which starts it for a device (spec/field-driver.md).
#![forbid(unsafe_code)]

mod address_space;
mod field;
mod gate;
mod identity;
mod level;
mod run;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_bridge::{Problem, Report};
use clap::{Args, Parser, Subcommand};
use serde_json::json;

use run::Orders;
use server::Setting;

/// Nothing was done, since the arguments or the files are not right.
const WRONG: u8 = 2;

/// Shows a node of a Bumpless pair as an OPC UA server, and speaks to servers for it
#[derive(Parser)]
#[command(name = "bumpless-opcua", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Tell everything as JSON, a line each (bumpless.opcua/1)
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Show a node until Ctrl-C
    Run(RunArgs),
    /// Make an application certificate with its key
    Certificate(CertificateArgs),
    /// Let a client in, by its certificate
    Trust(TrustArgs),
    /// Read and write a server for a node, which starts this itself
    Field,
}

#[derive(Args)]
struct RunArgs {
    /// The node's control socket
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
    /// Address and port for clients
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4840")]
    listen: SocketAddr,
    /// How clients call this computer; the address of --listen if left out
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// ApplicationUri of this server, such as urn:bumpless:PAIR:NODE
    #[arg(long)]
    uri: String,
    /// ApplicationUri of the server beside the partner; without it no redundancy is shown
    #[arg(long, value_name = "URI")]
    partner_uri: Option<String>,
    /// Folder with certificate.der, key.pem and trusted/
    #[arg(
        long,
        value_name = "FOLDER",
        required_unless_present = "insecure",
        conflicts_with = "insecure"
    )]
    files: Option<PathBuf>,
    /// Without certificates: whoever reaches the server reads all of it
    #[arg(long)]
    insecure: bool,
}

#[derive(Args)]
struct CertificateArgs {
    /// ApplicationUri of the server, such as urn:bumpless:PAIR:NODE
    #[arg(long)]
    uri: String,
    /// Name or address by which clients reach this computer; several times if there are several
    #[arg(long, value_name = "NAME", required = true)]
    host: Vec<String>,
    /// Folder that certificate.der and key.pem are made in
    #[arg(long, value_name = "FOLDER")]
    files: PathBuf,
}

#[derive(Args)]
struct TrustArgs {
    /// The client's application certificate, in DER or PEM
    certificate: PathBuf,
    /// Folder of the server's certificate
    #[arg(long, value_name = "FOLDER")]
    files: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Field = cli.command {
        return field::run();
    }
    let report = Report {
        program: "bumpless-opcua",
        schema: "bumpless.opcua/1",
        json: cli.json,
    };
    let done = match cli.command {
        Command::Run(args) => run_bridge(args, report),
        Command::Certificate(args) => make_certificate(&args, report),
        Command::Trust(args) => trust(&args, report),
        Command::Field => Ok(ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|problems| {
        report.refuse(&problems);
        ExitCode::from(WRONG)
    })
}

/// A URI that two servers can be told apart by.
fn check_uri(option: &str, uri: &str) -> Option<Problem> {
    let printable = uri.chars().all(|it| it.is_ascii_graphic());
    let scheme = uri
        .split_once(':')
        .filter(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    (!printable || scheme.is_none() || uri.len() > 255).then(|| {
        Problem::new(
            format!("{option} '{uri}' is no URI"),
            "give one such as urn:bumpless:PAIR:NODE, at most 255 characters without spaces",
        )
    })
}

/// What the bridge is ordered to do, if all of it is right.
fn orders(args: RunArgs) -> Result<Orders, Vec<Problem>> {
    let mut problems = Vec::new();
    problems.extend(check_uri("--uri", &args.uri));
    if let Some(partner) = &args.partner_uri {
        problems.extend(check_uri("--partner-uri", partner));
        if *partner == args.uri {
            problems.push(Problem::new(
                "--partner-uri is --uri",
                "give each node's server a URI of its own",
            ));
        }
    }
    if args.host.is_none() && args.listen.ip().is_unspecified() {
        problems.push(Problem::new(
            format!(
                "--listen {} does not say how clients call this computer",
                args.listen
            ),
            "give --host, too",
        ));
    }
    if let Some(files) = &args.files {
        match files.canonicalize() {
            Ok(_) => problems.extend(identity::check(files, &args.uri)),
            Err(error) => problems.push(Problem::new(
                format!("--files {}: {error}", files.display()),
                "make the folder with `bumpless-opcua certificate`",
            )),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let files = match args.files {
        Some(files) => {
            identity::make_folders(&files).map_err(|problem| vec![problem])?;
            // The library takes paths from here on; it must not matter where this runs.
            Some(files.canonicalize().unwrap_or(files))
        }
        None => None,
    };
    let host = args.host.unwrap_or_else(|| match args.listen {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    });
    Ok(Orders {
        control: args.control,
        listen: args.listen,
        setting: Setting {
            uri: args.uri,
            partner_uri: args.partner_uri,
            host,
            files,
        },
    })
}

fn run_bridge(args: RunArgs, report: Report) -> Result<ExitCode, Vec<Problem>> {
    let orders = orders(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        vec![Problem::new(
            error.to_string(),
            "free some memory or processes",
        )]
    })?;
    let ended = runtime.block_on(run::run(orders, report));
    // Connections that do not end are not waited for.
    runtime.shutdown_background();
    ended.map_err(|problem| vec![problem])
}

fn make_certificate(args: &CertificateArgs, report: Report) -> Result<ExitCode, Vec<Problem>> {
    let mut problems: Vec<_> = check_uri("--uri", &args.uri).into_iter().collect();
    if problems.is_empty() {
        problems.extend(identity::make(&args.files, &args.uri, &args.host).err());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let path = args.files.join(identity::CERTIFICATE);
    let words = format!(
        "{} is the certificate of {}; have clients trust it, and let each in with `bumpless-opcua trust`",
        path.display(),
        args.uri
    );
    report.tell(
        "certificate",
        &words,
        json!({"file": path, "uri": args.uri}),
    );
    Ok(ExitCode::SUCCESS)
}

fn trust(args: &TrustArgs, report: Report) -> Result<ExitCode, Vec<Problem>> {
    let path = identity::trust(&args.files, &args.certificate).map_err(|problem| vec![problem])?;
    let words = format!("who has the key of {} is let in", path.display());
    report.tell("trusted", &words, json!({"file": path}));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(args: &[&str]) -> Result<Orders, String> {
        let all = [&["bumpless-opcua", "run", "--control", "/c.sock"], args].concat();
        let Command::Run(args) = Cli::try_parse_from(all)
            .map_err(|error| error.to_string())?
            .command
        else {
            return Err("another command".into());
        };
        let lines = |problems: Vec<Problem>| problems.iter().map(|it| format!("{it}\n")).collect();
        orders(args).map_err(lines)
    }

    #[test]
    fn all_that_is_wrong_with_the_arguments_is_told_at_once() {
        let wrong = judged(&[
            "--uri",
            "left",
            "--partner-uri",
            "left",
            "--listen",
            "0.0.0.0:0",
            "--files",
            "/nowhere/at/all",
        ])
        .unwrap_err();
        for part in [
            "--uri 'left' is no URI",
            "--partner-uri is --uri",
            "give --host",
            "/nowhere/at/all",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
    }

    #[test]
    fn security_is_given_up_in_so_many_words_only() {
        let neither = judged(&["--uri", "urn:a:b"]).unwrap_err();
        assert!(neither.contains("--files"), "{neither}");
        let both = judged(&["--uri", "urn:a:b", "--files", "/f", "--insecure"]).unwrap_err();
        assert!(both.contains("cannot be used with"), "{both}");
        let orders = judged(&["--uri", "urn:a:b", "--insecure", "--listen", "[::1]:4840"]).unwrap();
        assert_eq!(
            (orders.setting.files, &*orders.setting.host),
            (None, "[::1]")
        );
    }
}
