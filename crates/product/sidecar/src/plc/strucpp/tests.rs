use super::declared::{Declaration, variable};
use super::*;

/// Lines as the generator writes them.
const TEXT: &str = "\
class Program_TANK;
inline GlobalVar<IEC_REAL> SETPOINT{0.0};
class Program_TANK : public ProgramBase {
public:
    IEC_INT LEVEL;  // AT %IW0
    const IEC_WORD MASK;  // AT %IW1
    IEC_BOOL ALARM;  // AT %QX0.3
    IEC_DINT MEMO;  // AT %MD5
    TON T1;
};
class Program_OTHER : public ProgramBase {
public:
    IEC_BOOL LAMP;  // AT %QX0.3
};
class Configuration_CONFIG0 : public ConfigurationInstance {
public:
    Program_TANK INST0;
    Program_OTHER INST1;
};
// Forward: SETPOINT AT %ID4 in configuration
// Forward: LEVEL AT %IW0 in Program_TANK
// Forward: MASK AT %IW1 in Program_TANK
// Forward: ALARM AT %QX0.3 in Program_TANK
// Forward: MEMO AT %MD5 in Program_TANK
// Forward: LAMP AT %QX0.3 in Program_OTHER
extern LocatedVar locatedVars[6];
";

fn table(text: &str) -> Result<Table, BuildFault> {
    Project::parse(text, "H")?.table(Path::new("folder"))
}

#[test]
fn each_address_is_one_value_with_the_type_of_its_variable() {
    let project = Project::parse(TEXT, "H").unwrap();
    assert_eq!(project.configuration, "Configuration_CONFIG0");
    assert_eq!(project.rows.len(), 6);
    let table = project.table(Path::new("folder")).unwrap();
    let told = |list: &[Located]| -> Vec<String> {
        list.iter()
            .map(|it| format!("{} {} {}", it.address, it.of, it.symbol))
            .collect()
    };
    assert_eq!(
        told(&table.inputs),
        [
            "%IW0 INT bumpless_to_IW0",
            "%IW1 UINT bumpless_to_IW1",
            "%ID4 REAL bumpless_to_ID4"
        ]
    );
    assert_eq!(told(&table.outputs), ["%QX0.3 BOOL bumpless_to_QX0_3"]);
    assert!(table.memory.is_empty(), "memory is the image's");
}

#[test]
fn the_header_for_the_library_names_each_row_and_each_address_once() {
    let header = Project::parse(TEXT, "H").unwrap().header();
    for part in [
        "#define BUMPLESS_CONFIGURATION Configuration_CONFIG0\n",
        "#define BUMPLESS_LOCATED 6\n",
        "\t{0, 3, 4, 0, &bumpless_at_ID4},\n",
        "\t{1, 0, 0, 3, &bumpless_at_QX0_3},\n",
        "\t{2, 3, 5, 0, &bumpless_at_MD5},\n",
    ] {
        assert!(header.contains(part), "{part}: {header}");
    }
    assert_eq!(header.matches("uint64_t bumpless_at_QX0_3;").count(), 1);
}

#[test]
fn what_cannot_be_a_value_is_refused_with_its_address() {
    for (from, to, part) in [
        (
            "IEC_INT LEVEL",
            "IEC_TIME LEVEL",
            "TIME, which is no number",
        ),
        ("IEC_INT LEVEL", "IEC_DINT LEVEL", "not as long"),
        ("IEC_BOOL LAMP", "IEC_SINT LAMP", "as BOOL and as SINT"),
        ("IEC_INT LEVEL;", "IEC_INT OTHER;", "not known here"),
        ("LEVEL AT %IW0 in", "LEVEL AT %IZ0 in", "no address"),
        (": public ConfigurationInstance", "", "no configuration"),
        (
            "// Forward: SETPOINT",
            "class Configuration_B : public ConfigurationInstance {\n};\n// Forward: SETPOINT",
            "several configurations (Configuration_CONFIG0, Configuration_B)",
        ),
        (
            "    Program_OTHER INST1;\n",
            "",
            "Program_OTHER has variables at addresses, and no task",
        ),
        (
            "    Program_OTHER INST1;\n",
            "    Program_OTHER INST1;\n    Program_OTHER INST2;\n",
            "and 2 instances",
        ),
        (
            "IEC_DINT MEMO",
            "IEC_INT MEMO",
            "%MD5 has the type INT, which is not as long",
        ),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let fault = table(&TEXT.replace(from, to)).unwrap_err();
        assert!(fault.to_string().contains(part), "{part}: {fault}");
    }
}

#[test]
fn declarations_are_read_with_whatever_stands_around_them() {
    for (line, of, name, is_boxed) in [
        ("IEC_INT LEVEL;  // AT %IW0", "INT", "LEVEL", false),
        ("const IEC_WORD MASK{3};", "WORD", "MASK", false),
        ("inline const IEC_INT X = 5;", "INT", "X", false),
        ("inline GlobalVar<IEC_REAL> G{0.0};", "REAL", "G", true),
        (
            "Array1D<IEC_INT, 1, 5> A;",
            "Array1D<IEC_INT, 1, 5>",
            "A",
            false,
        ),
    ] {
        let expected = Declaration { of, name, is_boxed };
        assert_eq!(variable(line), Some(expected));
    }
    assert_eq!(variable("public:"), None);
}

#[test]
fn retained_variables_are_found_in_structures_in_any_letter_case() {
    let text = TEXT
        .replace(
            "class Program_TANK : public",
            "struct PAIR {\n    IEC_INT A;\n};\nclass BLOCK final {\n    PAIR P;\n};\nclass Program_TANK : public",
        )
        .replace("    TON T1;", "    BLOCK B1;\n    Array1D<IEC_INT, 1, 5> MANY;")
        .replace("inline GlobalVar", "inline IEC_DINT PLAIN{};\ninline GlobalVar");
    let project = Project::parse(&text, "H").unwrap();
    let found = project.variable("Inst0.b1.P.A").unwrap();
    let expected = ("INST0.B1.P.A", "bumpless_configuration.INST0.B1.P.A", "INT");
    assert_eq!((&*found.name, &*found.expression, &*found.of), expected);
    let found = project.variable("PLAIN").unwrap();
    assert_eq!((&*found.expression, &*found.of), ("strucpp::PLAIN", "DINT"));
    let refused = project.variable("INST0.MANY").unwrap_err();
    assert!(
        refused.contains("Array1D<IEC_INT, 1, 5>, which cannot"),
        "{refused}"
    );
}
