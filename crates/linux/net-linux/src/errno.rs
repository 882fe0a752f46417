//! The kernel's error numbers, as a value that costs nothing to pass around.

use crate::open_files;
use std::fmt;
use std::io;

/// An error number as in errno(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// The error number of the calling thread's last failed system call.
    pub fn last() -> Self {
        Self(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)?;
        match open_files::limit().filter(|_| self.0 == libc::EMFILE) {
            Some(limit) => write!(
                f,
                "; this process may have {limit} at a time: raise the limit (`ulimit -n`, or LimitNOFILE= of \
                 the service)"
            ),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Errno {}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

/// What the system said, with what remedy there is.
pub fn explained(error: &io::Error) -> String {
    let errno = error.raw_os_error();
    errno.map_or_else(|| error.to_string(), |errno| Errno(errno).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_told_with_limit_and_remedy() {
        let told = Errno(libc::EMFILE).to_string();
        let limit = open_files::limit().unwrap().to_string();
        for words in ["Too many open files", &limit, "ulimit -n"] {
            assert!(told.contains(words), "{told}");
        }
        assert!(!Errno(libc::EPERM).to_string().contains("ulimit"));
    }
}
