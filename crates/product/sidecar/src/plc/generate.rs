//! C that is made from the table of located variables.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::located::{Located, Table};

/// What the generated code leaves to its runtime and `given` does not have: located variables, time and the debugger's
/// flag. It is state like the rest.
pub(super) fn missing(table: &Table, given: &BTreeSet<String>) -> String {
    let mut text = String::from("#include <stdint.h>\n");
    let lists = [&table.inputs, &table.outputs, &table.memory];
    for it in lists.into_iter().flatten() {
        if !given.contains(&it.symbol) {
            let (of, symbol) = (it.of.in_c(), &it.symbol);
            let _ = writeln!(
                text,
                "static {of} bumpless{symbol};\n{of} *{symbol} = &bumpless{symbol};"
            );
        }
    }
    if !given.contains("__CURRENT_TIME") {
        text.push_str("struct { long tv_sec, tv_nsec; } __CURRENT_TIME;\n");
    }
    if !given.contains("__DEBUG") {
        text.push_str("uint8_t __DEBUG;\n");
    }
    text
}

/// The tables by which inputs and outputs are put and got.
pub(super) fn table(table: &Table) -> String {
    let mut text = String::from("#include \"plc.h\"\n");
    for (list, name) in [(&table.inputs, "input"), (&table.outputs, "output")] {
        let mut declared = BTreeSet::new();
        for it in list {
            if declared.insert(&it.symbol) {
                let _ = writeln!(text, "extern void *{};", it.symbol);
            }
        }
        let rows: Vec<String> = list.iter().map(row).collect();
        // An empty table is no table in C.
        let rows = if rows.is_empty() {
            "{0, TYPE_BOOL}".to_owned()
        } else {
            rows.join(", ")
        };
        let _ = writeln!(
            text,
            "const struct bumpless_located bumpless_{name}[] = {{{rows}}};\nconst uint32_t bumpless_{name}s = {};",
            list.len()
        );
    }
    text
}

fn row(it: &Located) -> String {
    format!("{{&{}, {}}}", it.symbol, it.of.in_table())
}
