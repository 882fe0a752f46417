//! The server's file: where it answers, which groups have keys, and who is a member.

mod check;
mod schema;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bumpless_base::Duration;
use bumpless_config::reading::Reader;
use bumpless_config::{KeyServerAt, Problem, read_configuration};
use bumpless_secure::group::Terms;

pub use schema::sample;

/// What a server's file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What it is called: its certificate has the name NAME.keys.
    pub name: String,
    /// The folder with the folder of its certificate.
    pub certificates: PathBuf,
    /// Where it answers, by TCP.
    pub listen: Vec<SocketAddr>,
    /// The file with its state.
    pub state: PathBuf,
    /// Path of the socket for status; `None`: the usual one.
    pub socket: Option<PathBuf>,
    /// From whom it takes its keys; empty: it makes them.
    pub follow: Vec<KeyServerAt>,
    /// Whose keys it has.
    pub groups: Vec<Group>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name; that of the pair for the nodes of a pair.
    pub name: String,
    /// Who is given its keys, as NODE.PAIR.
    pub members: Vec<String>,
    /// How long each key is sealed with, and how many are given in advance.
    pub terms: Terms,
}

impl Group {
    /// For so long members go on without any server, at least.
    pub fn outlasts(&self) -> Duration {
        self.terms.lifetime * self.terms.future as u64
    }
}

impl Config {
    /// Reads and checks `text`, which messages call `name`.
    ///
    /// # Errors
    /// Everything that is wrong, each with its line and what would be right.
    pub fn parse(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::new(name, text);
        let file = schema::read(&mut reader, text);
        let config = file.and_then(|file| check::resolve(&mut reader, file));
        config.ok_or_else(|| reader.into_problems())
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// As [`Config::parse`]; also if there is no such file that can be read.
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(&read_configuration(path)?, &path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_a_file_and_says_what_it_seems_to_say() {
        let config = Config::parse(&sample(), "sample").unwrap();
        assert_eq!((config.name.as_str(), config.follow.len()), ("main", 0));
        assert_eq!(config.groups[0].outlasts(), Duration::from_secs(24 * 3600));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let text = "[key_server]\nname = \"a b\"\nlisten = [\"10.0.0.1\"]\nfollow = [\"10.0.0.1:1\"]\ncolour = 1\n\
                    [[group]]\nname = \"tank\"\nmembers = [\"left\"]\nlifetime_s = 0\n\
                    [[group]]\nname = \"tank\"\nmembers = [\"left.tank\", \"LEFT.tank\"]\nin_advance = 65\n";
        let problems = Config::parse(text, "file").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        let words = [
            "name",
            "listen",
            "follow",
            "colour",
            "members",
            "lifetime_s",
            "in_advance",
        ];
        for words in words {
            assert!(told.contains(words), "{words} in {told}");
        }
        let twice = "[key_server]\nname = \"main\"\nlisten = [\"10.0.0.1:1\"]\n[[group]]\nname = \"t\"\nmembers = [\"a.t\"]\n\
                     [[group]]\nname = \"T\"\nmembers = [\"main.keys\"]\n";
        let problems = Config::parse(twice, "file").unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(Config::parse("", "file").is_err());
    }
}
