use super::*;

fn variable(name: &str, offset: u32) -> StateVariable {
    StateVariable {
        name: name.into(),
        of: "INT".into(),
        offset,
        len: 2,
    }
}

#[test]
fn the_table_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
    let all = vec![variable("A", 4), variable("B", 0)];
    let file = [b"code", &table(&all)[..], b"more"].concat();
    assert_eq!(variables(&file), Ok(all.clone()));
    assert_eq!(variables(b"no table"), Ok(Vec::new()));
    assert_eq!(
        variables(&[file.clone(), file.clone()].concat()),
        Err(Unreadable)
    );
    let written = table(&all);
    for cut in MARK.len()..written.len() {
        assert_eq!(variables(&written[..cut]), Err(Unreadable), "cut at {cut}");
    }
    let mut other = written.clone();
    other[MARK.len()] = 2;
    assert_eq!(variables(&other), Err(Unreadable));
    let unsorted = table(&[variable("B", 0), variable("A", 4)]);
    assert_eq!(variables(&unsorted), Err(Unreadable));
}

/// Both forms that `readelf` has printed values in.
const SAID: &str = "\
 <0><b>: Abbrev Number: 1 (DW_TAG_compile_unit)
    <11>   DW_AT_name        : (strp) (offset: 0x133): Res0.c
 <1><3b>: Abbrev Number: 2 (DW_TAG_base_type)
    <3c>   DW_AT_byte_size   : 2
    <3d>   DW_AT_encoding    : 5\t(signed)
    <3e>   DW_AT_name        : (indirect string, offset: 0x168): short int
 <1><c7>: Abbrev Number: 5 (DW_TAG_typedef)
    <c8>   DW_AT_name        : (string) IEC_INT
    <cf>   DW_AT_type        : (ref4) <0x3b>, short int
 <1><d0>: Abbrev Number: 5 (DW_TAG_structure_type)
    <d1>   DW_AT_byte_size   : (data1) 4
 <2><d2>: Abbrev Number: 7 (DW_TAG_member)
    <d3>   DW_AT_name        : value
    <d4>   DW_AT_type        : <0xc7>
    <d5>   DW_AT_data_member_location: 0
 <2><d6>: Abbrev Number: 7 (DW_TAG_member)
    <d7>   DW_AT_name        : flags
    <d8>   DW_AT_type        : <0x3b>
    <d9>   DW_AT_data_member_location: 2
 <2><da>: Abbrev Number: 0
 <1><db>: Abbrev Number: 5 (DW_TAG_array_type)
    <dc>   DW_AT_type        : <0xd0>
 <2><dd>: Abbrev Number: 7 (DW_TAG_subrange_type)
    <de>   DW_AT_upper_bound : (data1) 1
 <2><df>: Abbrev Number: 0
 <1><722>: Abbrev Number: 14 (DW_TAG_variable)
    <723>   DW_AT_name        : (strp) (offset: 0x1e6): LIST
    <72a>   DW_AT_type        : (ref4) <0xdb>
    <72e>   DW_AT_location    : (exprloc) 9 byte block: 3 20 0 0 10 0 0 0 0 \t(DW_OP_addr: 10000020)
 <1><730>: Abbrev Number: 14 (DW_TAG_subprogram)
    <731>   DW_AT_name        : body
 <2><732>: Abbrev Number: 14 (DW_TAG_variable)
    <733>   DW_AT_name        : (string) count
    <734>   DW_AT_type        : (ref4) <0xc7>
    <735>   DW_AT_location    : (exprloc) 9 byte block: 3 0 0 0 10 0 0 0 0 \t(DW_OP_addr: 10000000)
";

#[test]
fn variables_are_found_with_their_parts_in_whatever_form_they_are_printed() {
    let found = layout::variables(&dies::parse(SAID), 64);
    let row = |name: &str, of: &str, offset, len| StateVariable {
        name: name.into(),
        of: of.into(),
        offset,
        len,
    };
    assert_eq!(
        found.expect("all of them"),
        [
            row("LIST", "array [2]", 32, 0),
            row("LIST[0]", "INT", 32, 2),
            row("LIST[1]", "INT", 36, 2),
            row("body.count", "INT", 0, 2),
        ]
    );
}

/// `SAID` with something else in it.
fn with(what: &str, instead: &str) -> Option<Vec<StateVariable>> {
    assert!(SAID.contains(what), "{what}");
    layout::variables(&dies::parse(&SAID.replace(what, instead)), 64)
}

#[test]
fn an_array_is_found_whether_the_compiler_tells_its_last_index_or_its_length() {
    let counted = with(
        "DW_AT_upper_bound : (data1) 1",
        "DW_AT_count       : (data1) 2",
    );
    assert!(counted.is_some());
    assert_eq!(counted, layout::variables(&dies::parse(SAID), 64));
    let empty = with(
        "DW_AT_upper_bound : (data1) 1",
        "DW_AT_count       : (data1) 0",
    );
    assert_eq!(empty.expect("the others").len(), 1);
}

/// H-33: a table that lacks a variable would let it begin anew without a word.
#[test]
fn where_one_variable_cannot_be_told_none_is() {
    for (what, instead) in [
        // A union without a name, which is none of a type that has one.
        ("(DW_TAG_structure_type)", "(DW_TAG_union_type)"),
        ("(DW_TAG_base_type)", "(DW_TAG_unspecified_type)"),
        ("DW_AT_byte_size   : 2", "DW_AT_sibling     : 2"),
        (
            "DW_AT_upper_bound : (data1) 1",
            "DW_AT_lower_bound : (data1) 1",
        ),
        (
            "DW_AT_name        : (strp) (offset: 0x1e6): LIST",
            "DW_AT_decl_line   : 7",
        ),
        ("DW_AT_type        : (ref4) <0xdb>", "DW_AT_decl_line   : 7"),
        ("DW_AT_type        : <0xc7>", "DW_AT_decl_line   : 7"),
        (
            "DW_AT_type        : (ref4) <0xdb>",
            "DW_AT_type        : (ref4) <0xfff>",
        ),
        // Larger than the state is.
        (
            "DW_AT_upper_bound : (data1) 1",
            "DW_AT_upper_bound : (data1) 99",
        ),
    ] {
        assert_eq!(with(what, instead), None, "{what}: {instead}");
    }
    // A structure within itself.
    assert_eq!(with("<0xc7>\n    <d5>", "<0xd0>\n    <d5>"), None);
}

#[test]
fn of_two_variables_of_one_name_none_is_told() {
    let found = vec![variable("f.x", 0), variable("g.x", 4)];
    assert_eq!(all_or_none(Some(found.clone())), found);
    let again = [&found[..], &found[..]].concat();
    assert_eq!(all_or_none(Some(again)), found, "described twice");
    let twice = [&found[..], &[variable("f.x", 8)]].concat();
    assert_eq!(all_or_none(Some(twice)), []);
}
