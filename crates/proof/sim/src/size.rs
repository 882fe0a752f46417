//! The two pairs that are simulated unless a scenario names a configuration.

use std::sync::Arc;

use bumpless_config::Config;

/// Which pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// Two applications of 1 kB every 10 ms on two networks, heartbeats every 2 ms.
    #[default]
    Small,
    /// The eleven applications of the first paper's table 20: 42.8 MB of state.
    Large,
}

const SMALL: &str = include_str!("small.toml");
const LARGE: &str = include_str!("../../../../examples/table20.toml");

impl Size {
    /// Its configuration.
    pub fn config(self) -> Arc<Config> {
        let (text, name) = match self {
            Self::Small => (SMALL, "small.toml"),
            Self::Large => (LARGE, "table20.toml"),
        };
        match Config::parse(text, name) {
            Ok(config) => Arc::new(config),
            Err(problems) => unreachable!("a test parses it: {problems:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_configurations_are_sound_and_of_the_stated_size() {
        assert_eq!(Size::Small.config().applications.len(), 2);
        assert_eq!(Size::Large.config().applications.len(), 11);
    }
}
