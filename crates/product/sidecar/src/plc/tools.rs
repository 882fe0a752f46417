//! The compiler and what comes with it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{BuildFault, Options, strucpp, undefined};

/// Where the state lies in the executable (H-22), far from where linkers put anything else.
pub(super) const STATE_ADDRESS: u64 = 0x1000_0000;

/// Gathers what can be written, from its first byte to its last, alone in its pages.
const SCRIPT: &str = "\
SECTIONS {
  .bumpless_state : ALIGN(65536) {
    bumpless_state_begin = .;
    *(.data .data.* .sdata .sdata.* .bss .bss.* .sbss .sbss.* .gnu.linkonce.d.* .gnu.linkonce.b.* COMMON)
    . = ALIGN(16);
    bumpless_state_end = .;
    . = ALIGN(65536);
  }
}
";

/// For all that is compiled: addresses are fixed, and arithmetic is the same everywhere.
const ALWAYS: [&str; 7] = [
    "-O2",
    // What variables there are, and where (H-33). It changes nothing of the code.
    "-g",
    "-gdwarf-4",
    "-fno-pic",
    "-fno-pie",
    "-fno-common",
    "-ffp-contract=off",
];
/// For generated code besides, which breaks some rules of C and is full of what a compiler warns of.
const GENERATED: [&str; 3] = ["-fno-strict-aliasing", "-fwrapv", "-w"];
const C: [&str; 1] = ["-std=gnu11"];
const CPP: [&str; 3] = ["-std=gnu++17", "-fno-rtti", "-fno-threadsafe-statics"];

/// Whether the file is in C++.
fn is_cpp(source: &str) -> bool {
    [".cpp", ".cc", ".cxx"]
        .iter()
        .any(|it| source.ends_with(it))
}

#[derive(Debug)]
pub(super) struct Tools<'a> {
    project: &'a Path,
    options: &'a Options,
    place: &'a Path,
    /// Whether the project is in C++.
    is_cpp: bool,
}

impl<'a> Tools<'a> {
    pub fn new(
        project: &'a Path,
        options: &'a Options,
        place: &'a Path,
        is_cpp: bool,
    ) -> Result<Self, BuildFault> {
        let tools = Self {
            project,
            options,
            place,
            is_cpp,
        };
        let cpp = (
            options.cpp_compiler.as_path(),
            "g++",
            "or name another compiler with --cxx",
        );
        let problems: Vec<String> = [
            (
                options.compiler.as_path(),
                "build-essential",
                "or name another compiler with --cc",
            ),
            (Path::new("nm"), "binutils", "which a compiler needs"),
            (Path::new("readelf"), "binutils", "which a compiler needs"),
            (Path::new("objcopy"), "binutils", "which a compiler needs"),
        ]
        .into_iter()
        .chain(is_cpp.then_some(cpp))
        .filter(|(tool, ..)| !is_there(tool))
        .map(|(tool, package, remedy)| {
            format!(
                "the program `{}` is not installed; on Debian `apt install {package}`, {remedy}",
                tool.display()
            )
        })
        .collect();
        if !problems.is_empty() {
            return Err(BuildFault(problems));
        }
        Ok(tools)
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), BuildFault> {
        fs::write(self.place.join(name), text)
            .map_err(|error| BuildFault::one(format!("{name} cannot be written: {error}")))
    }

    /// Compiles a file of the project.
    pub fn compile_generated(&self, source: &str) -> Result<PathBuf, BuildFault> {
        let object = self.place.join(format!("user-{source}.o"));
        let mut command = self.for_project(source);
        command
            .arg("-c")
            .arg(self.project.join(source))
            .arg("-o")
            .arg(&object);
        let output = self.run(&mut command)?;
        if output.status.success() {
            return Ok(object);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lacks = said.contains("No such file");
        let hint = match (lacks, self.is_cpp) {
            (false, _) => "",
            (true, false) => "\nGive the folder of MATIEC's headers (lib/C) with --include",
            (true, true) => {
                "\nGive the folder of STruC++'s headers (strucpp_runtime/include) with --include"
            }
        };
        Err(BuildFault::one(format!(
            "{} does not compile:\n{}{hint}",
            self.project.join(source).display(),
            said.trim_end()
        )))
    }

    /// Compiles a file that is made for the project, and takes its headers. If it does not compile, they are not what
    /// `unless` says.
    pub fn compile_beside(&self, source: &str, unless: &str) -> Result<PathBuf, BuildFault> {
        let object = self.place.join(format!("{source}.o"));
        let mut command = self.for_project(source);
        command.arg("-I").arg(self.place);
        command.arg("-c").arg(self.place.join(source));
        let output = self.run(command.arg("-o").arg(&object))?;
        if output.status.success() {
            return Ok(object);
        }
        Err(BuildFault::one(format!(
            "{unless}:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }

    /// Whether the project is in C++.
    pub fn is_cpp(&self) -> bool {
        self.is_cpp
    }

    /// The compiler of the project's language.
    fn linker(&self) -> Command {
        Command::new(match self.is_cpp {
            true => &self.options.cpp_compiler,
            false => &self.options.compiler,
        })
    }

    /// The compiler as it is called for what takes the project's headers.
    fn for_project(&self, source: &str) -> Command {
        let (compiler, language) = match is_cpp(source) {
            true => (&self.options.cpp_compiler, CPP.as_slice()),
            false => (&self.options.compiler, C.as_slice()),
        };
        let mut command = Command::new(compiler);
        command.args(ALWAYS).args(GENERATED).args(language);
        command.arg("-I").arg(self.project);
        let headers = if self.is_cpp { strucpp::HEADERS } else { "lib" };
        command.arg("-I").arg(self.project.join(headers));
        for folder in &self.options.includes {
            command.arg("-I").arg(folder);
        }
        command
    }

    /// Compiles a file of ours.
    pub fn compile(&self, source: &str) -> Result<PathBuf, BuildFault> {
        let object = self.place.join(format!("{source}.o"));
        let mut command = Command::new(&self.options.compiler);
        command.args(ALWAYS).args(["-std=gnu11", "-w", "-c"]);
        command.arg(self.place.join(source)).arg("-o").arg(&object);
        let output = self.run(&mut command)?;
        if output.status.success() {
            return Ok(object);
        }
        Err(BuildFault::one(format!(
            "a file of Bumpless does not compile with {}; name another compiler with --cc:\n{}",
            self.options.compiler.display(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }

    /// Makes one relocatable object in which all that can be written lies in one section.
    pub fn gather(&self, objects: &[PathBuf]) -> Result<PathBuf, BuildFault> {
        self.write("state.ld", SCRIPT)?;
        let (gathered, script) = (self.place.join("gathered.o"), self.place.join("state.ld"));
        let mut command = self.linker();
        command.args(["-r", "-nostdlib", "-no-pie", "-Wl,--force-group-allocation"]);
        command
            .arg("-T")
            .arg(script)
            .args(objects)
            .arg("-o")
            .arg(&gathered);
        let output = self.run(&mut command)?;
        if output.status.success() {
            return Ok(gathered);
        }
        Err(BuildFault::one(format!(
            "the generated files do not go together:\n{}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }

    /// Links the executable, and says whether it is self-contained: it is where the system has the libraries for that.
    pub fn link(&self, gathered: PathBuf) -> Result<(PathBuf, bool), BuildFault> {
        let executable = self.place.join("program");
        let mut objects = vec![gathered];
        for source in ["bumpless.c", "plc.c", "table.c"] {
            objects.push(self.compile(source)?);
        }
        if !self.is_cpp {
            objects.push(self.compile("plc_matiec.c")?);
        }
        for self_contained in [true, false] {
            let mut command = self.linker();
            command.args(self_contained.then_some("-static"));
            // A build-id would hash what a debugger uses, and so the folder.
            command.args(["-no-pie", "-Wl,--build-id=none"]);
            command.arg(format!(
                "-Wl,--section-start=.bumpless_state={STATE_ADDRESS:#x}"
            ));
            command.args(&objects).arg("-lm").arg("-o").arg(&executable);
            let output = self.run(&mut command)?;
            if output.status.success() {
                return Ok((executable, self_contained));
            }
            let said = String::from_utf8_lossy(&output.stderr);
            let missing = undefined::references(&said);
            if !missing.is_empty() {
                return Err(BuildFault(missing));
            }
            if !self_contained {
                return Err(BuildFault::one(format!(
                    "the executable cannot be linked:\n{}",
                    said.trim_end()
                )));
            }
        }
        unreachable!("the second attempt returns")
    }

    /// Adds the table of variables, and takes away what a debugger would use: it names folders of this computer.
    pub fn add_table(&self, executable: &Path, table: &[u8]) -> Result<(), BuildFault> {
        let file = self.place.join("variables");
        fs::write(&file, table).map_err(|error| {
            BuildFault::one(format!("{} cannot be written: {error}", file.display()))
        })?;
        let mut command = Command::new("objcopy");
        let section = ".bumpless_variables";
        command.arg("--strip-debug");
        command.arg(format!("--add-section={section}={}", file.display()));
        command.arg(format!("--set-section-flags={section}=noload,readonly"));
        let output = self.run(command.arg(executable))?;
        if output.status.success() {
            return Ok(());
        }
        Err(BuildFault::one(format!(
            "objcopy cannot add the table of variables: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        )))
    }

    /// What `nm` or `readelf` says of a file.
    pub fn inspect(
        &self,
        tool: &str,
        arguments: &[&str],
        file: &Path,
    ) -> Result<String, BuildFault> {
        let output = self.run(Command::new(tool).args(arguments).arg(file))?;
        if !output.status.success() {
            return Err(BuildFault::one(format!(
                "{tool} cannot read what was compiled: {}",
                String::from_utf8_lossy(&output.stderr).trim_end()
            )));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Puts the executable in its place, whole or not at all.
    pub fn put_in_place(&self, executable: &Path, output: &Path) -> Result<(), BuildFault> {
        let cannot = |error: io::Error| {
            BuildFault::one(format!(
                "{} cannot be written: {error}; give another place with --output",
                output.display()
            ))
        };
        let folder = output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let beside = tempfile::Builder::new()
            .prefix(".bumpless")
            .tempfile_in(folder)
            .map_err(cannot)?
            .into_temp_path();
        fs::copy(executable, &beside).map_err(cannot)?;
        beside.persist(output).map_err(|error| cannot(error.error))
    }

    fn run(&self, command: &mut Command) -> Result<Output, BuildFault> {
        // What tools say is looked into.
        command.env("LC_ALL", "C");
        command.output().map_err(|error| {
            let tool = command.get_program().display();
            BuildFault::one(format!("`{tool}` cannot be run: {error}"))
        })
    }
}

/// Whether the system finds a program.
fn is_there(tool: &Path) -> bool {
    if tool.components().count() > 1 {
        return tool.is_file();
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(tool).is_file())
}
