//! What would keep this computer from running a server: everything that a start looks at, without taking or making anything.

use std::path::{Path, PathBuf};

use bumpless_net_linux::Clock;
use bumpless_node::{InstanceLock, key_file};

use crate::config::Config;
use crate::error::RunError;
use crate::request::socket_path;
use crate::service::restored;
use crate::start::{load_identity, lock_of};
use crate::store::Store;

/// Everything for which [`run`](crate::run) would refuse the file at `file`, whose content is `config`, but a server that runs
/// already.
pub fn obstacles(config: &Config, file: &Path) -> Vec<RunError> {
    let mut found = Vec::new();
    let folder = key_file::folder_of(Some(file));
    let state = folder.join(&config.state);
    // A site is needed for names alone: without a certificate the state can still be judged.
    let site = match load_identity(config, file) {
        Ok((identity, _)) => identity.name().site().to_owned(),
        Err(error) => {
            found.push(error);
            "site".to_owned()
        }
    };
    let lock = |path: PathBuf| InstanceLock::could_be_made(&path);
    found.extend(lock(lock_of(&state)).map_err(RunError::Lock).err());
    let socket = socket_path(config, folder);
    found.extend(lock(lock_of(&socket)).map_err(RunError::Control).err());
    let groups = restored(config, &site, &Store::new(state), Clock.now());
    found.extend(groups.err());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "[key_server]\nname = \"main\"\nlisten = [\"127.0.0.1:7300\"]\nsocket = \"none/at/all/main.sock\"\n\
                        [[group]]\nname = \"tank\"\nmembers = [\"left.tank\"]\n";

    #[test]
    fn whatever_a_start_would_refuse_is_an_obstacle_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.toml");
        let config = Config::parse(TEXT, "main.toml").unwrap();
        let told = || -> Vec<String> {
            let found = obstacles(&config, &file);
            found.iter().map(ToString::to_string).collect()
        };
        // There is no certificate in here.
        let found = told();
        assert!(
            found.len() == 1 && found[0].contains("pki issue"),
            "{found:?}"
        );
        let state = folder.path().join("main.keys.state");
        fs::write(&state, "garbage").unwrap();
        for (mode, words) in [(0o644, "mode 644"), (0o600, "no state of a key server")] {
            fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
            let found = told();
            assert!(found.len() == 2 && found[1].contains(words), "{found:?}");
        }
        fs::remove_file(&state).unwrap();
        fs::write(folder.path().join("none"), "a file in a folder's place").unwrap();
        let found = told();
        assert!(
            found.len() == 2 && found[1].contains("main.sock.lock"),
            "{found:?}"
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is made"
        );
    }
}
