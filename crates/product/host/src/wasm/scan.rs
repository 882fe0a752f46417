//! What stands in a valid module, as far as its host must know it.

use wasmparser::{
    BinaryReaderError, ExternalKind, FuncType, FunctionBody, Operator, Parser, Payload, TypeRef,
    ValType,
};

/// A part of a valid module in its binary form.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) types: Vec<FuncType>,
    pub(super) imports: Vec<Import>,
    /// Type of each function, the imported ones first.
    pub(super) functions: Vec<u32>,
    pub(super) memories: Vec<MemorySize>,
    /// All globals, the imported ones first.
    pub(super) globals: Vec<GlobalKind>,
    /// Element type of each table, the imported ones first.
    pub(super) tables: Vec<Reference>,
    pub(super) exports: Vec<Export>,
    pub(super) start: Option<u32>,
    /// Tables that an instruction may change.
    pub(super) changed_tables: Vec<u32>,
    /// Instructions whose effect no state shows, with their place.
    pub(super) unmovable: Vec<(&'static str, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) module: String,
    pub(super) name: String,
    pub(super) what: ImportKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportKind {
    /// With its type.
    Function(u32),
    Table,
    Memory,
    Global,
    Tag,
}

impl ImportKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Function(_) => "function",
            Self::Table => "table",
            Self::Memory => "memory",
            Self::Global => "global",
            Self::Tag => "tag",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Export {
    pub(super) name: String,
    /// The function, if it is one.
    pub(super) function: Option<u32>,
    /// The global, if it is one.
    pub(super) global: Option<u32>,
}

/// Pages of 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemorySize {
    pub(super) least: u64,
    pub(super) most: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GlobalKind {
    pub(super) mutable: bool,
    pub(super) content: Content,
}

/// What a global holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    I32,
    I64,
    F32,
    F64,
    Reference(Reference),
}

/// What a reference is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Function,
    /// To something of the host's, which gives none: always null.
    Foreign,
}

impl Reference {
    fn of(content: wasmparser::RefType) -> Self {
        match content.is_func_ref() {
            true => Self::Function,
            false => Self::Foreign,
        }
    }
}

impl Content {
    fn of(content: ValType) -> Self {
        match content {
            ValType::I32 => Self::I32,
            ValType::F32 => Self::F32,
            ValType::F64 => Self::F64,
            ValType::Ref(reference) => Self::Reference(Reference::of(reference)),
            // Vectors are not valid here.
            ValType::I64 | ValType::V128 => Self::I64,
        }
    }
}

impl Parts {
    /// Takes a module apart that has been found valid.
    pub(super) fn of(module: &[u8]) -> Result<Self, BinaryReaderError> {
        let mut parts = Self {
            types: Vec::new(),
            imports: Vec::new(),
            functions: Vec::new(),
            memories: Vec::new(),
            globals: Vec::new(),
            tables: Vec::new(),
            exports: Vec::new(),
            start: None,
            changed_tables: Vec::new(),
            unmovable: Vec::new(),
        };
        for payload in Parser::new(0).parse_all(module) {
            parts.note(payload?)?;
        }
        parts.changed_tables.sort_unstable();
        parts.changed_tables.dedup();
        Ok(parts)
    }

    fn note(&mut self, payload: Payload<'_>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(types) => {
                for entry in types.into_iter_err_on_gc_types() {
                    self.types.push(entry?);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports {
                    self.note_import(&import?);
                }
            }
            Payload::FunctionSection(functions) => {
                for function in functions {
                    self.functions.push(function?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    self.tables.push(Reference::of(table?.ty.element_type));
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    let memory = memory?;
                    self.memories.push(MemorySize {
                        least: memory.initial,
                        most: memory.maximum,
                    });
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.note_global(global?.ty);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let function = (export.kind == ExternalKind::Func).then_some(export.index);
                    let global = (export.kind == ExternalKind::Global).then_some(export.index);
                    self.exports.push(Export {
                        name: export.name.to_owned(),
                        function,
                        global,
                    });
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::CodeSectionEntry(body) => self.note_code(&body)?,
            _ => {}
        }
        Ok(())
    }

    fn note_import(&mut self, import: &wasmparser::Import<'_>) {
        let what = match import.ty {
            TypeRef::Func(index) => {
                self.functions.push(index);
                ImportKind::Function(index)
            }
            TypeRef::Table(table) => {
                self.tables.push(Reference::of(table.element_type));
                ImportKind::Table
            }
            TypeRef::Memory(memory) => {
                self.memories.push(MemorySize {
                    least: memory.initial,
                    most: memory.maximum,
                });
                ImportKind::Memory
            }
            TypeRef::Global(global) => {
                self.note_global(global);
                ImportKind::Global
            }
            _ => ImportKind::Tag,
        };
        self.imports.push(Import {
            module: import.module.to_owned(),
            name: import.name.to_owned(),
            what,
        });
    }

    fn note_global(&mut self, global: wasmparser::GlobalType) {
        self.globals.push(GlobalKind {
            mutable: global.mutable,
            content: Content::of(global.content_type),
        });
    }

    fn note_code(&mut self, body: &FunctionBody<'_>) -> Result<(), BinaryReaderError> {
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let (operator, offset) = operators.read_with_offset()?;
            match operator {
                Operator::TableSet { table }
                | Operator::TableGrow { table }
                | Operator::TableFill { table }
                | Operator::TableInit { table, .. } => self.changed_tables.push(table),
                Operator::TableCopy { dst_table, .. } => self.changed_tables.push(dst_table),
                Operator::DataDrop { .. } => self.unmovable.push(("data.drop", offset)),
                Operator::ElemDrop { .. } => self.unmovable.push(("elem.drop", offset)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The function that is exported as `name`, and its type.
    pub(super) fn exported_function(&self, name: &str) -> Option<(u32, &FuncType)> {
        let export = self.exports.iter().find(|export| export.name == name)?;
        let index = export.function?;
        Some((index, self.function_type(index)?))
    }

    /// Type of the function with this number.
    pub(super) fn function_type(&self, index: u32) -> Option<&FuncType> {
        let index = *self.functions.get(index as usize)?;
        self.types.get(index as usize)
    }

    /// Numbers of the globals that can change.
    pub(super) fn mutable_globals(&self) -> impl Iterator<Item = (u32, Content)> + '_ {
        let numbered = (0u32..).zip(&self.globals);
        numbered.filter_map(|(index, global)| global.mutable.then_some((index, global.content)))
    }

    /// Whether the state holds references to functions.
    pub(super) fn keeps_functions(&self) -> bool {
        let function = Reference::Function;
        let kept = |&table: &u32| self.tables.get(table as usize) == Some(&function);
        self.changed_tables.iter().any(kept)
            || self
                .mutable_globals()
                .any(|(_, content)| content == Content::Reference(function))
    }
}
