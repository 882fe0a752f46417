//! A password in a file.

use std::path::Path;

use zeroize::Zeroizing;

use crate::{Cause, Guard, read};

/// The longest password, bytes.
pub const PASSWORD_MAX: usize = 1024;
/// What may stand after it: the end of its line.
const ENDS: [&str; 2] = ["\r\n", "\n"];

/// Why a file gives no password. Nothing of what it holds is in here.
#[derive(Debug)]
pub enum PasswordCause {
    /// The file itself cannot be used.
    File(Cause),
    /// It has nothing, or the end of a line alone.
    Empty,
    /// It has several lines.
    SeveralLines,
    /// It is not UTF-8, or has a zero byte.
    NoText,
}

impl PasswordCause {
    /// What is wrong, without the file's name.
    pub fn wrong(&self) -> String {
        match self {
            Self::File(Cause::TooLong) => {
                format!("has more than {PASSWORD_MAX} bytes, which no password has")
            }
            Self::File(cause) => cause.wrong(),
            Self::Empty => "is empty".into(),
            Self::SeveralLines => "has more than one line".into(),
            Self::NoText => "is no text in UTF-8".into(),
        }
    }

    /// What would be right for the file at `path`.
    pub fn remedy(&self, path: &Path) -> String {
        match self {
            Self::File(Cause::Missing) => format!(
                "make it with `install -m 600 /dev/null {}`, and write the password there",
                path.display()
            ),
            Self::File(Cause::NotRegular | Cause::TooLong)
            | Self::Empty
            | Self::SeveralLines
            | Self::NoText => "give a file with the password in its one line".into(),
            Self::File(cause) => cause.remedy(path),
        }
    }
}

/// The password in the file at `path`, which only its owner may read, without the end of its line. It is overwritten in
/// memory when it is dropped.
///
/// # Errors
/// The file is not guarded as what is secret, or what it has is no password.
pub fn password(path: &Path) -> Result<Zeroizing<String>, PasswordCause> {
    let longest = PASSWORD_MAX + ENDS[0].len();
    let content = read(path, Guard::Secret, longest).map_err(PasswordCause::File)?;
    let text = std::str::from_utf8(&content).map_err(|_| PasswordCause::NoText)?;
    let end = ENDS.into_iter().find(|end| text.ends_with(end));
    let text = text.strip_suffix(end.unwrap_or("")).unwrap_or(text);
    if text.is_empty() {
        return Err(PasswordCause::Empty);
    }
    if text.len() > PASSWORD_MAX {
        return Err(PasswordCause::File(Cause::TooLong));
    }
    if text.contains(['\n', '\r']) {
        return Err(PasswordCause::SeveralLines);
    }
    if text.contains('\0') {
        return Err(PasswordCause::NoText);
    }
    Ok(Zeroizing::new(text.to_owned()))
}
