//! Large inputs: joined from pinned packages or generated, checked, and kept in the build directory.

use crate::fetch::{Packages, matching_files};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The inputs that `inputs.toml` describes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputList {
    #[serde(default)]
    input: Vec<InputFile>,
}

/// One input file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// The name that recipes use, in `{input:NAME}`.
    pub name: String,
    /// Its contents.
    pub description: String,
    /// XXH3 of the whole file, in hexadecimal.
    pub checksum: String,
    /// Cut to this many bytes; generators go on until they have as many.
    limit: Option<usize>,
    /// How parts become the file.
    #[serde(default)]
    generator: Generator,
    #[serde(default)]
    part: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Generator {
    /// The parts, one after the other.
    #[default]
    Join,
    /// The parts' files one after the other, each after a line with its name and size in bytes.
    Archive,
    /// Slices of the parts between binary data.
    Mixed,
    /// Binary data alone.
    Records,
}

/// Files of one package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    package: String,
    files: Vec<String>,
    limit: Option<usize>,
}

impl InputList {
    /// Reads `inputs.toml`.
    pub fn load(workloads: &Path) -> Result<Self> {
        let path = workloads.join("inputs.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    /// All inputs.
    pub fn iter(&self) -> impl Iterator<Item = &InputFile> {
        self.input.iter()
    }

    /// The input of a name.
    pub fn get(&self, name: &str) -> Result<&InputFile> {
        self.iter()
            .find(|input| input.name == name)
            .with_context(|| format!("inputs.toml has no '{name}'"))
    }
}

impl InputFile {
    /// The file, made if it is not in `folder` yet.
    pub fn materialise(&self, packages: &Packages, folder: &Path) -> Result<PathBuf> {
        // The name contains the checksum, so that files of an older `inputs.toml` are not used.
        let path = folder.join(format!("{}-{}", self.name, self.checksum));
        if path.is_file() {
            return Ok(path);
        }
        let bytes = self.contents(packages)?;
        let checksum = checksum(&bytes);
        ensure!(
            checksum == self.checksum,
            "the input '{}' has the checksum {checksum}, not {}: a package or the generator changed",
            self.name,
            self.checksum
        );
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let file = tempfile::NamedTempFile::new_in(folder)?;
        fs::write(file.path(), &bytes)?;
        file.persist(&path)?;
        Ok(path)
    }

    /// The checksum that the contents have now, committed or not.
    pub fn current_checksum(&self, packages: &Packages) -> Result<String> {
        Ok(checksum(&self.contents(packages)?))
    }

    fn contents(&self, packages: &Packages) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        for part in &self.part {
            text.extend(part.contents(packages, self.generator == Generator::Archive)?);
        }
        match (self.generator, self.limit) {
            (Generator::Join, limit) => {
                text.truncate(limit.unwrap_or(usize::MAX));
                Ok(text)
            }
            (Generator::Archive, None) if !text.is_empty() => Ok(text),
            (Generator::Archive, _) => bail!("the archive '{}' has a limit or no parts", self.name),
            (Generator::Mixed, Some(size)) if !text.is_empty() => Ok(mixed(&text, size)),
            (Generator::Records, Some(size)) => Ok(mixed(&[], size)),
            (generator, _) => bail!("the {generator:?} input '{}' lacks a limit or parts", self.name),
        }
    }
}

impl Part {
    fn contents(&self, packages: &Packages, named: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for file in matching_files(packages.folder(&self.package)?, &self.files)? {
            let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            if named {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                bytes.extend(format!("{name} {}\n", text.len()).bytes());
            }
            bytes.extend(text);
        }
        bytes.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(bytes)
    }
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// Marsaglia's xorshift, as in the drivers: the inputs must never change with a library's generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Stretches of text, records, picture rows and noise, in the proportions of a backup more than of a benchmark.
fn mixed(text: &[u8], size: usize) -> Vec<u8> {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut bytes = Vec::with_capacity(size + 40_000);
    while bytes.len() < size {
        match random.below(20) {
            0..10 if !text.is_empty() => {
                let length = (2_000 + random.below(30_000)).min(text.len());
                let start = random.below(text.len() - length + 1);
                bytes.extend_from_slice(&text[start..start + length]);
            }
            0..14 => records(&mut bytes, &mut random),
            14..19 => picture_rows(&mut bytes, &mut random),
            _ => bytes.extend((0..4_000).map(|_| (random.next() >> 24) as u8)),
        }
    }
    bytes.truncate(size);
    bytes
}

/// Fixed-size records: a counter, a time that advances unevenly, an identifier from a small set, a padded name.
fn records(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut time = 1_600_000_000 + random.below(1_000_000) as u64;
    for index in 0..200 + random.below(400) as u32 {
        time += random.below(90) as u64;
        let name = format!("unit-{:03}", random.below(120));
        bytes.extend_from_slice(&index.to_le_bytes());
        bytes.extend_from_slice(&time.to_le_bytes());
        bytes.extend_from_slice(&(random.below(40) as u16 * 257).to_le_bytes());
        bytes.extend_from_slice(format!("{name:<14}").as_bytes());
        bytes.extend_from_slice(&(random.below(1000) as f32 / 8.0).to_le_bytes());
    }
}

/// Rows of a grey-scale picture: a slow gradient with a little noise.
fn picture_rows(bytes: &mut Vec<u8>, random: &mut Random) {
    let base = random.below(200);
    for row in 0..24 {
        for column in 0..512 {
            bytes.push((base + row + column / 16 + random.below(4)) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_inputs_never_change() {
        assert_eq!(
            checksum(&mixed(b"some text that is sliced", 200_000)),
            "a8de1f3da7329592"
        );
        assert_eq!(checksum(&mixed(&[], 200_000)), "15ba90f46afece87");
    }
}
