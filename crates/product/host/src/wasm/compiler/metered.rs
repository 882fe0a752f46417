//! A module that asks its host now and then whether it may go on.
//!
//! wasmtime counts steps and stops a program that has none left, but it cannot go on then. So the module gets a counter, which its functions, loops and such instructions count down, and a
//! function of the host's that is called when nothing is left of it. No thread, no signal and no stack of its own is needed for
//! that, and looks at the clock hang on what the program does alone.

use std::convert::Infallible;

use ::wasm_encoder::reencode::{Error, Reencode, utils};
use ::wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function,
    GlobalSection, GlobalType, ImportSection, Instruction, Module, SectionId, TypeSection, ValType,
};
use wasmparser::{
    CodeSectionReader, ExportSectionReader, FunctionBody, GlobalSectionReader, ImportSectionReader,
    Operator, Parser, TypeSectionReader,
};

use crate::wasm::scan::{ImportKind, Parts};

/// The module from which the host's function comes: no program's, whose imports are all from another one.
pub(super) const HOST: &str = "host";
/// The host's function.
pub(super) const PAUSE: &str = "pause";
/// Exported: what is left until it is called.
pub(super) const LEFT: &str = "left";
/// Exported: steps that the moving of memory was worth.
pub(super) const MOVED: &str = "moved";

/// Counted in a function's own variable before the counter is touched.
const IN_A_LOOP: i32 = 512;
/// Instructions without a loop that are counted together, and most that one turn of a loop or a call of a function counts as: many
/// have long ways of which each turn takes a short one.
const AT_ONCE: u32 = 4096;
const TURN_MAX: u32 = 1024;
/// A step for so many bytes moved, as powers of two: bytes, elements of tables, pages.
const BYTES: i64 = 6;
const ELEMENTS: i64 = 3;
const PAGES: i64 = -10;

/// `module`, whose parts are `parts`, with counter and pauses.
pub(super) fn metered(module: &[u8], parts: &Parts) -> Result<Vec<u8>, Error> {
    let functions = parts.imports.iter();
    let imported = functions.filter(|import| matches!(import.what, ImportKind::Function(_)));
    let mut metering = Metering {
        parts,
        imported: imported.count() as u32,
        at: 0,
    };
    let mut out = Module::new();
    metering.parse_core_module(&mut out, Parser::new(0), module)?;
    Ok(out.finish())
}

struct Metering<'a> {
    parts: &'a Parts,
    /// Functions that are imported.
    imported: u32,
    /// Functions of the module's own that are done.
    at: u32,
}

impl Metering<'_> {
    /// Number of the host's function: it comes after the imported ones.
    fn pause(&self) -> u32 {
        self.imported
    }

    fn left(&self) -> u32 {
        self.parts.globals.len() as u32
    }

    fn moved(&self) -> u32 {
        self.left() + 1
    }

    fn add_import(&self, imports: &mut ImportSection) {
        let ty = self.parts.types.len() as u32;
        imports.import(HOST, PAUSE, EntityType::Function(ty));
    }
}

fn add_globals(globals: &mut GlobalSection) {
    let ty = GlobalType {
        val_type: ValType::I64,
        mutable: true,
        shared: false,
    };
    for _ in [LEFT, MOVED] {
        globals.global(ty, &ConstExpr::i64_const(0));
    }
}

impl Reencode for Metering<'_> {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> u32 {
        function + u32::from(function >= self.imported)
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([], []);
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_import_section(self, imports, section)?;
        self.add_import(imports);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_global_section(self, globals, section)?;
        add_globals(globals);
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_export_section(self, exports, section)?;
        exports.export(LEFT, ExportKind::Global, self.left());
        exports.export(MOVED, ExportKind::Global, self.moved());
        Ok(())
    }

    /// Sections that the module does not have. Types and exports there are: it exports `cycle`.
    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        after: Option<SectionId>,
        before: Option<SectionId>,
    ) -> Result<(), Error> {
        if after == Some(SectionId::Type) && before != Some(SectionId::Import) {
            let mut imports = ImportSection::new();
            self.add_import(&mut imports);
            module.section(&imports);
        }
        if before == Some(SectionId::Export) && after != Some(SectionId::Global) {
            let mut globals = GlobalSection::new();
            add_globals(&mut globals);
            module.section(&globals);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error> {
        self.at = 0;
        utils::parse_code_section(self, code, section)
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error> {
        let ty = self.parts.function_type(self.imported + self.at);
        let mut count = ty.map_or(0, |ty| ty.params().len() as u32);
        self.at += 1;
        let mut locals = Vec::new();
        for entry in body.get_locals_reader()? {
            let (more, ty) = entry?;
            count += more;
            locals.push((more, self.val_type(ty)?));
        }
        locals.push((3, ValType::I32));
        let mut meter = Meter {
            function: Function::new(locals),
            pause: self.pause(),
            left: self.left(),
            moved: self.moved(),
            turned: count,
            amount: count + 1,
            grown: count + 2,
        };
        let turns = turns(&body)?;
        let mut turns = turns.iter();
        let entry = turns.next().map_or(1, |own| turn(*own));
        // What is turned in loops until the function returns is not counted down.
        let unseen = if turns.len() == 0 {
            0
        } else {
            IN_A_LOOP as u32
        };
        meter.count(i64::from(entry + unseen));
        let mut reader = body.get_operators_reader()?;
        let mut straight = 0;
        while !reader.eof() {
            let operator = reader.read()?;
            straight += 1;
            if straight == AT_ONCE {
                straight = 0;
                meter.count(AT_ONCE.into());
            }
            let is_loop = matches!(operator, Operator::Loop { .. });
            let unit = unit(&operator);
            let grows = matches!(
                operator,
                Operator::MemoryGrow { .. } | Operator::TableGrow { .. }
            );
            if let Some(unit) = unit {
                meter.keep_amount();
                if !grows {
                    meter.count_amount(unit);
                }
            }
            meter.function.instruction(&self.instruction(operator)?);
            if let Some(unit) = unit.filter(|_| grows) {
                meter.count_growth(unit);
            }
            if is_loop {
                meter.turn(turns.next().map_or(1, |own| turn(*own)));
            }
        }
        code.function(&meter.function);
        Ok(())
    }
}

/// What one turn of a loop with so many instructions of its own counts as.
fn turn(own: u32) -> u32 {
    own.clamp(1, TURN_MAX)
}

/// Instructions of a function's own, then those of each of its loops, none counted twice.
fn turns(body: &FunctionBody<'_>) -> Result<Vec<u32>, Error> {
    let mut turns = vec![0u32];
    // The loop around each block, for the blocks that are open.
    let mut around = Vec::new();
    let mut now = 0;
    for operator in body.get_operators_reader()? {
        let operator = operator?;
        turns[now] = turns[now].saturating_add(1);
        match operator {
            Operator::Block { .. } | Operator::If { .. } => around.push(now),
            Operator::Loop { .. } => {
                around.push(now);
                now = turns.len();
                turns.push(0);
            }
            Operator::End => now = around.pop().unwrap_or(0),
            _ => {}
        }
    }
    Ok(turns)
}

/// What the last operand of an instruction that moves memory counts.
fn unit(operator: &Operator<'_>) -> Option<i64> {
    match operator {
        Operator::MemoryFill { .. } | Operator::MemoryCopy { .. } | Operator::MemoryInit { .. } => {
            Some(BYTES)
        }
        Operator::TableFill { .. }
        | Operator::TableCopy { .. }
        | Operator::TableInit { .. }
        | Operator::TableGrow { .. } => Some(ELEMENTS),
        Operator::MemoryGrow { .. } => Some(PAGES),
        _ => None,
    }
}

/// A function that is written anew.
struct Meter {
    function: Function,
    pause: u32,
    left: u32,
    moved: u32,
    /// Variable: counted in loops, and not yet counted down.
    turned: u32,
    /// Variable: the last operand.
    amount: u32,
    /// Variable: what growth has given.
    grown: u32,
}

impl Meter {
    fn put(&mut self, instructions: &[Instruction<'_>]) {
        for instruction in instructions {
            self.function.instruction(instruction);
        }
    }

    /// Counts down what `amount` puts on the stack, and asks the host if nothing is left.
    fn count_down(&mut self, amount: &[Instruction<'_>]) {
        let (left, pause) = (self.left, self.pause);
        self.put(&[Instruction::GlobalGet(left)]);
        self.put(amount);
        self.put(&[
            Instruction::I64Sub,
            Instruction::GlobalSet(left),
            Instruction::GlobalGet(left),
            Instruction::I64Const(0),
            Instruction::I64LtS,
            Instruction::If(BlockType::Empty),
            Instruction::Call(pause),
            Instruction::End,
        ]);
    }

    fn count(&mut self, steps: i64) {
        self.count_down(&[Instruction::I64Const(steps)]);
    }

    /// One turn of the loop that has just begun.
    fn turn(&mut self, steps: u32) {
        let turned = self.turned;
        self.put(&[
            Instruction::LocalGet(turned),
            Instruction::I32Const(steps as i32),
            Instruction::I32Add,
            Instruction::LocalTee(turned),
            Instruction::I32Const(IN_A_LOOP),
            Instruction::I32GtU,
            Instruction::If(BlockType::Empty),
        ]);
        self.count_down(&[
            Instruction::LocalGet(turned),
            Instruction::I64ExtendI32U,
            Instruction::I32Const(0),
            Instruction::LocalSet(turned),
        ]);
        self.put(&[Instruction::End]);
    }

    /// Keeps the last operand of the instruction that follows.
    fn keep_amount(&mut self) {
        self.put(&[Instruction::LocalTee(self.amount)]);
    }

    /// Counts what was kept.
    fn count_amount(&mut self, unit: i64) {
        let (amount, moved) = (self.amount, self.moved);
        let shift = match unit {
            0.. => Instruction::I64ShrU,
            _ => Instruction::I64Shl,
        };
        let steps = [
            Instruction::LocalGet(amount),
            Instruction::I64ExtendI32U,
            Instruction::I64Const(unit.abs()),
            shift,
        ];
        self.put(&[Instruction::GlobalGet(moved)]);
        self.put(&steps);
        self.put(&[Instruction::I64Add, Instruction::GlobalSet(moved)]);
        self.count_down(&steps);
    }

    /// The same behind an instruction that grows something, if it has: what does not grow moves nothing.
    fn count_growth(&mut self, unit: i64) {
        let grown = self.grown;
        self.put(&[
            Instruction::LocalTee(grown),
            Instruction::I32Const(-1),
            Instruction::I32Ne,
            Instruction::If(BlockType::Empty),
        ]);
        self.count_amount(unit);
        self.put(&[Instruction::End, Instruction::LocalGet(grown)]);
    }
}
