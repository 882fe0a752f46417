//! Who may ask for what: the node's user and root for everything, whoever else could open the socket for status alone.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// Where the system has its groups.
const GROUPS: &str = "/etc/group";

/// Whether who is at the other end of `stream` may ask for something, which is an `order` or only a question.
///
/// # Errors
/// Why not, and who may.
pub fn judge(stream: &UnixStream, order: bool) -> Result<(), String> {
    let caller = socket_peercred(stream)
        .map_err(|error| format!("the system does not tell who asks: {error}"))?;
    may(caller.uid.as_raw(), geteuid().as_raw(), order)
}

fn may(caller: u32, owner: u32, order: bool) -> Result<(), String> {
    if !order || caller == owner || caller == 0 {
        return Ok(());
    }
    Err(format!(
        "user {caller} may ask for status alone; give orders as the user who runs the node (`sudo -u '#{owner}' ...`) or as \
         root"
    ))
}

/// The number of `group`, which is given by name or number.
///
/// # Errors
/// There is none of this name.
pub fn group(group: &str) -> io::Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let text = fs::read_to_string(GROUPS)?;
    find(&text, group).ok_or_else(|| {
        let cause = format!(
            "there is no group '{group}' in {GROUPS}; name one that is there, or give its number"
        );
        io::Error::new(io::ErrorKind::NotFound, cause)
    })
}

fn find(text: &str, group: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let named = fields.next() == Some(group);
        fields.nth(1).filter(|_| named)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_for_the_owner_and_root_and_status_for_whoever_could_open_the_socket() {
        for caller in [0, 1000, 1001] {
            assert_eq!(may(caller, 1000, false), Ok(()));
            assert_eq!(may(caller, 1000, true).is_ok(), caller != 1001);
        }
        assert!(may(0, 0, true).is_ok());
        assert!(may(1001, 0, true).is_err());
    }

    #[test]
    fn a_group_is_found_by_its_whole_name_or_number() {
        let text = "root:x:0:\noperators:x:1007:anna,ben\noper:x:1008:\nbroken\n:x:5:\n";
        assert_eq!(find(text, "operators"), Some(1007));
        assert_eq!(find(text, "oper"), Some(1008));
        assert_eq!([find(text, "op"), find(text, "broken")], [None, None]);
        assert_eq!(group("1009").unwrap(), 1009);
        let error = group("no such group").unwrap_err();
        assert!(
            error.to_string().contains("no group 'no such group'"),
            "{error}"
        );
    }
}
