//! How large a terminal is.

use std::os::fd::{AsFd, AsRawFd};

/// Rows and columns of the terminal behind a descriptor; `None` if it is none, or does not tell.
pub fn size(terminal: &impl AsFd) -> Option<(usize, usize)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let descriptor = terminal.as_fd().as_raw_fd();
    // SAFETY: the call fills `size`, which has the layout that TIOCGWINSZ is for; the descriptor is borrowed meanwhile.
    let answer = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &raw mut size) };
    let (rows, columns) = (usize::from(size.ws_row), usize::from(size.ws_col));
    (answer == 0 && rows > 0 && columns > 0).then_some((rows, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_has_no_size() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(size(&file), None);
    }
}
