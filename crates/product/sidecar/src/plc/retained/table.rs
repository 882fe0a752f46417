//! The table of retained variables as it is compiled (H-32).

use std::collections::BTreeMap;
use std::fmt::Write;

use super::executable::{MARK, VERSION};
use super::{Place, Variable};
use crate::plc::elementary::value;
use crate::plc::strucpp;

/// The rows of the table in C and C++.
const ROWS: &str = "#include <stdint.h>
struct bumpless_retained {
	const volatile void *address;
	uint32_t length;
	char of[16], name[116];
};
";

/// The table: file and text. The compiler checks that each variable has its type's length.
pub(in crate::plc) fn table(
    variables: &[Variable],
    strucpp: Option<&strucpp::Project>,
) -> (&'static str, String) {
    let mut text = String::from(ROWS);
    match strucpp {
        Some(it) => text.push_str(&it.declaration()),
        None => text.push_str(&declarations(variables)),
    }
    let mut rows = String::new();
    for Variable { name, of, place } in variables {
        let len = length(of);
        let (address, check) = match place {
            // The value is the first thing in a global variable.
            Place::Global(symbol) => (symbol.clone(), String::new()),
            Place::Program { symbol, member, .. } => {
                let value = format!("{symbol}.{member}.value");
                let check =
                    format!("_Static_assert(sizeof {value} == {len}, \"{name} is no {of}\");");
                (format!("&{value}"), check)
            }
            Place::Strucpp(expression) => (
                format!("&{expression}"),
                strucpp::is_value(expression, &len, name),
            ),
        };
        let _ = writeln!(text, "{check}");
        let (of, name) = (characters(of.as_bytes()), characters(name.as_bytes()));
        let _ = writeln!(rows, "\t\t{{{address}, {len}, {of}, {name}}},");
    }
    let _ = write!(
        text,
        "extern const struct bumpless_retain_table {{\n\tunsigned char mark[16];\n\tuint32_t version, count;\n\
         \tstruct bumpless_retained of[{}];\n}} bumpless_retain;\n\
         const struct bumpless_retain_table bumpless_retain = {{\n\t{}, {VERSION}, {},\n\t{{\n{rows}\t}},\n}};\n",
        variables.len().max(1),
        MARK.map(|byte| format!("'{}'", char::from(byte)))
            .join(", "),
        variables.len(),
    );
    let name = if strucpp.is_some() {
        "retained.cpp"
    } else {
        "retained.c"
    };
    (name, text)
}

/// Bytes of a value of this type, in C.
pub(super) fn length(of: &str) -> String {
    match value(of) {
        Some(it) => match it.each {
            Some(each) => format!("{}", u64::from(each) * u64::from(it.count)),
            None => format!("{} * sizeof({})", it.count, it.of),
        },
        None => String::from("0"),
    }
}

/// A text without the zero at its end, for which C++ wants room.
fn characters(text: &[u8]) -> String {
    let each: Vec<_> = text
        .iter()
        .map(|&byte| format!("'{}'", char::from(byte)))
        .collect();
    format!("{{{}}}", each.join(", "))
}

/// What MATIEC's code has of them.
fn declarations(variables: &[Variable]) -> String {
    let mut text = String::new();
    let mut declared = BTreeMap::new();
    for it in variables {
        match &it.place {
            Place::Global(symbol) => declared.insert(symbol, None),
            Place::Program { of, symbol, .. } => declared.insert(symbol, Some(of)),
            Place::Strucpp(_) => None,
        };
    }
    let is_text = |it: &Variable| value(&it.of).is_some_and(|it| it.each.is_none());
    if declared.values().any(Option::is_some) || variables.iter().any(is_text) {
        text.push_str("#include \"POUS.h\"\n");
    }
    for (symbol, program) in declared {
        let _ = match program {
            Some(program) => writeln!(text, "extern {program} {symbol};"),
            None => writeln!(text, "extern char {symbol}[];"),
        };
    }
    text
}
