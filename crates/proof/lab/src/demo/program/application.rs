//! What stands in the configuration of the pair that runs a program of the user.

use std::fmt::Write;
use std::net::SocketAddr;

use bumpless_host::subject::HostKind;

use super::super::configuration::FIELD_SECURITY;
use super::Shown;
use super::device::{CYCLE, EPOCH, INPUTS, REGISTERS};

/// A text in quotes, as TOML has it.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn list(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The application in `group` on the device at `device`.
pub fn text(shown: &Shown, group: &str, device: SocketAddr) -> String {
    let subject = shown.subject.borrow();
    let (shape, period_ms) = (subject.shape(), subject.period().as_millis_f64());
    let file = match subject.started() {
        Some(started) => started.file.clone(),
        None => std::path::absolute(subject.file()).unwrap_or_else(|_| subject.file().to_owned()),
    };
    let mut text = format!(
        "\n[[application]]\nname = \"program\"\ngroup = \"{group}\"\nkind = \"{}\"\nchannel = 1\n\
         period_ms = {period_ms}\ncommit = \"before_output\"\nfile = {}\nstate_max = {}\nexecute_limit_ms = {period_ms}\n",
        subject.host().name(),
        quoted(&file.display().to_string()),
        // A process may tell at any time that its state has as many bytes as before, a module one that has grown.
        match subject.host() {
            HostKind::Wasm => shape.state_max.min(shown.state_bytes * 2 + 4096),
            HostKind::Process | HostKind::Plc => shown.state_bytes,
        }
    );
    if let Some(engine) = subject.engine() {
        let _ = writeln!(text, "engine = \"{engine}\"");
    }
    if let Some(most) = subject.memory_max() {
        let _ = writeln!(text, "memory_max = {most}");
    }
    if let (Some(started), HostKind::Process) = (subject.started(), subject.host()) {
        if !started.command.is_empty() {
            let _ = writeln!(text, "command = {}", list(&started.command));
        }
        if !started.arguments.is_empty() {
            let _ = writeln!(text, "arguments = {}", list(&started.arguments));
        }
    }
    let _ = write!(
        text,
        "\n[application.field]\ncheck_epoch = true\ntimeout_ms = {:.1}\n\n\
         [[application.field.device]]\nname = \"device\"\naddress = \"{device}\"\n\
         {FIELD_SECURITY}epoch_register = {EPOCH}\ncycle_register = {CYCLE}\n",
        period_ms * 0.4
    );
    for input in 0..shape.inputs {
        let register = usize::from(INPUTS) + input * usize::from(REGISTERS);
        let _ = write!(
            text,
            "\n[[application.input]]\nname = \"input{input}\"\ndevice = \"device\"\nregister = {register}\ntype = \"f64\"\n"
        );
    }
    for output in 0..shape.outputs {
        let _ = write!(
            text,
            "\n[[application.output]]\nname = \"output{output}\"\ndevice = \"device\"\narea = \"block\"\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_stand_in_the_file() {
        assert_eq!(quoted("a \"b\" c:\\d\n"), r#""a \"b\" c:\\d\u000A""#);
        assert_eq!(list(&["a".into(), "b".into()]), r#"["a", "b"]"#);
    }
}
