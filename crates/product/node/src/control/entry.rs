//! Folders of sockets that a group is to reach: made so that its members may enter them, and looked at whether they may.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{OFlags, getxattr};
use rustix::io::Errno;

/// Where a folder's access control list is, if it has one (acl(5)).
const LIST: &str = "system.posix_acl_access";

/// The folder of the file at `path`.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes `folder` and those above it that are not there, for this user; members of the group with this number may enter them.
///
/// # Errors
/// One of them cannot be made, or not be given to the group.
pub fn make_for(group: u32, folder: &Path) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && it.symlink_metadata().is_err();
    let missing: Vec<_> = folder.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        // Nobody else has a way to it until it is as it is to be.
        DirBuilder::new().mode(0o700).create(folder)?;
        // What somebody may have put into its place is not changed.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let mut options = File::options();
        options.read(true).custom_flags(flags.bits().cast_signed());
        let made = options.open(folder)?;
        fchown(&made, None, Some(group))?;
        made.set_permissions(Permissions::from_mode(0o710))?;
    }
    Ok(())
}

/// Whether members of the group with this number may enter `folder` and those above it, of those that are there. One with an access
/// control list is taken to let them in.
///
/// # Errors
/// The first that keeps them out, with what to do.
pub fn lets_in(group: u32, folder: &Path) -> io::Result<()> {
    // Nobody keeps root out.
    if group == 0 {
        return Ok(());
    }
    let whole = std::path::absolute(folder)?;
    let there = whole.ancestors().find(|it| it.exists());
    let there = fs::canonicalize(there.unwrap_or(Path::new("/")))?;
    for folder in there.ancestors() {
        if may_enter(group, &fs::metadata(folder)?) || has_list(folder) {
            continue;
        }
        let folder = folder.display();
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "members of group {group} may not enter the folder {folder}, so that they do not reach the socket: name a socket in another \
                 folder, or let them in (`chgrp {group} {folder}` and `chmod g+x {folder}`)"
            ),
        ));
    }
    Ok(())
}

fn may_enter(group: u32, folder: &Metadata) -> bool {
    let enters = match folder.gid() == group {
        true => 0o010,
        false => 0o001,
    };
    folder.mode() & enters != 0
}

fn has_list(folder: &Path) -> bool {
    let mut list = [0_u8; 1024];
    let read = getxattr(folder, LIST, &mut list);
    matches!(read, Ok(_) | Err(Errno::RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that this user may give files to, and that is not root's.
    fn group() -> u32 {
        match rustix::process::geteuid().is_root() {
            true => 65_533,
            false => rustix::process::getegid().as_raw(),
        }
    }

    #[test]
    fn a_folder_that_is_made_for_a_group_lets_its_members_in_and_nobody_else() {
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), Permissions::from_mode(0o755)).unwrap();
        let folder = top.path().join("one/two");
        // Those that are not there will be made.
        lets_in(group(), &folder).unwrap();
        make_for(group(), &folder).unwrap();
        for made in [top.path().join("one"), folder.clone()] {
            let made = fs::metadata(made).unwrap();
            assert_eq!((made.mode() & 0o777, made.gid()), (0o710, group()));
        }
        lets_in(group(), &folder).unwrap();
        assert!(lets_in(group() + 1, &folder).is_err());
        // A folder that is there stays as it is.
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        make_for(group(), &folder).unwrap();
        let refused = lets_in(group(), &folder).unwrap_err().to_string();
        for part in [folder.to_str().unwrap(), "chgrp", "chmod g+x"] {
            assert!(refused.contains(part), "{refused}");
        }
        lets_in(0, &folder).unwrap();
        // So does one above it.
        fs::set_permissions(&folder, Permissions::from_mode(0o711)).unwrap();
        fs::set_permissions(top.path().join("one"), Permissions::from_mode(0o601)).unwrap();
        assert!(lets_in(group(), &folder).is_err());
    }
}
