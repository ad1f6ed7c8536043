//! Finds the files of recorded modules on the machine that reads a recording, which may not be the one that ran them.

use crate::binary::{Binary, BinaryError};
use std::env;
use std::path::{Path, PathBuf};

/// Where the files of recorded modules are looked for, in this order:
/// 1. files that the user names, by build-id, or failing that by file name;
/// 2. the recorded path below another root, such as that of a container;
/// 3. the recorded path;
/// 4. by build-id in the caches of debuginfod's client and of perf.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    named: Vec<Binary>,
    root: Option<PathBuf>,
    caches: Vec<Cache>,
}

/// A folder of files by build-id.
#[derive(Clone, Debug)]
enum Cache {
    /// debuginfod's: `BUILDID/executable`.
    Debuginfod(PathBuf),
    /// perf's: `XX/REST/elf`.
    Perf(PathBuf),
}

/// Why a module's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The file on disk is not the one that ran.
    #[error(
        "{}: changed since it was recorded (build-id {recorded}, now {found}): record again, or point --binary at the \
         recorded file",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Build-id when recorded.
        recorded: String,
        /// Build-id now.
        found: String,
    },
    /// The file is gone or unreadable.
    #[error(transparent)]
    Binary(#[from] BinaryError),
}

impl Finder {
    /// Looks for modules among named files, below another root, and in the caches that the environment names.
    ///
    /// # Errors
    /// A named file cannot be read.
    pub fn new(named: &[PathBuf], root: Option<&Path>) -> Result<Self, BinaryError> {
        Ok(Self {
            named: named.iter().map(|path| Binary::open(path)).collect::<Result<_, _>>()?,
            root: root.map(Path::to_owned),
            caches: caches(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)),
        })
    }

    /// Whether the user has named a file for a module.
    pub fn names(&self, path: &Path, build_id: Option<&[u8]>) -> bool {
        self.named(path, build_id).is_some()
    }

    /// The file of a module. `build_id` is the recorded one.
    ///
    /// # Errors
    /// The recorded file is nowhere, or is another build.
    pub fn open(&self, path: &Path, build_id: Option<&[u8]>) -> Result<Binary, FindError> {
        if let Some(binary) = self.named(path, build_id) {
            return unchanged(binary.clone(), build_id);
        }
        // The reason that is told is about the first place where the user expects the file.
        let mut reason = None;
        let below = self
            .root
            .as_ref()
            .map(|root| root.join(path.strip_prefix("/").unwrap_or(path)));
        for candidate in below.iter().map(PathBuf::as_path).chain([path]) {
            match Binary::open(candidate)
                .map_err(FindError::from)
                .and_then(|b| unchanged(b, build_id))
            {
                Ok(binary) => return Ok(binary),
                Err(error) => reason = reason.or(Some(error)),
            }
        }
        let cached = build_id
            .into_iter()
            .flat_map(|id| self.caches.iter().map(|cache| cache.path(id)));
        for candidate in cached.filter(|candidate| candidate.is_file()) {
            // A file of a cache that is damaged, or of another build, is as good as none.
            if let Ok(binary) = Binary::open(&candidate)
                && binary.build_id.as_deref() == build_id
            {
                return Ok(binary);
            }
        }
        Err(reason.unwrap_or_else(|| unreachable!("the recorded path was tried")))
    }

    fn named(&self, path: &Path, build_id: Option<&[u8]>) -> Option<&Binary> {
        let same_build = |binary: &&Binary| build_id.is_some() && binary.build_id.as_deref() == build_id;
        let same_name = |binary: &&Binary| binary.path.file_name() == path.file_name();
        let mut all = self.named.iter();
        all.clone().find(same_build).or_else(|| all.find(same_name))
    }
}

fn unchanged(binary: Binary, build_id: Option<&[u8]>) -> Result<Binary, FindError> {
    if binary.build_id.as_deref() == build_id {
        return Ok(binary);
    }
    let in_words = |id: Option<&[u8]>| id.map_or_else(|| "none".into(), hex);
    Err(FindError::Changed {
        recorded: in_words(build_id),
        found: in_words(binary.build_id.as_deref()),
        path: binary.path,
    })
}

impl Cache {
    fn path(&self, build_id: &[u8]) -> PathBuf {
        let id = hex(build_id);
        match self {
            Self::Debuginfod(folder) => folder.join(id).join("executable"),
            Self::Perf(folder) => {
                let (first, rest) = id.split_at(id.len().min(2));
                folder.join(first).join(rest).join("elf")
            }
        }
    }
}

/// The caches by environment variable: debuginfod's is in `DEBUGINFOD_CACHE_PATH`, else `XDG_CACHE_HOME`, else `.cache`
/// of the home; perf's in `.debug` of the home.
fn caches(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<Cache> {
    let home = variable("HOME");
    let standard = || {
        let folder = variable("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")))?;
        Some(folder.join("debuginfod_client"))
    };
    let debuginfod = variable("DEBUGINFOD_CACHE_PATH").or_else(standard);
    let perf = home.as_ref().map(|home| home.join(".debug/.build-id"));
    debuginfod
        .map(Cache::Debuginfod)
        .into_iter()
        .chain(perf.map(Cache::Perf))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_caches_are() {
        let paths = |environment: &[(&str, &str)]| -> Vec<String> {
            let variable = |name: &str| {
                environment
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| value.into())
            };
            let caches = caches(variable);
            caches
                .iter()
                .map(|cache| cache.path(&[0xab, 0xcd, 0x01]).display().to_string())
                .collect()
        };
        assert_eq!(
            paths(&[("HOME", "/h")]),
            [
                "/h/.cache/debuginfod_client/abcd01/executable",
                "/h/.debug/.build-id/ab/cd01/elf"
            ]
        );
        assert_eq!(
            paths(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")])[0],
            "/x/debuginfod_client/abcd01/executable"
        );
        assert_eq!(
            paths(&[("DEBUGINFOD_CACHE_PATH", "/d"), ("XDG_CACHE_HOME", "/x")]),
            ["/d/abcd01/executable"]
        );
        assert!(paths(&[]).is_empty());
    }

    #[test]
    fn places_are_tried_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = env::current_exe().expect("the test itself");
        let build_id = Binary::open(&own).expect("an executable").build_id;
        let id = build_id.as_deref();
        let gone = Path::new("/none/app");
        let finder = Finder::default();
        assert!(matches!(
            finder.open(gone, id),
            Err(FindError::Binary(BinaryError::Read { .. }))
        ));

        // Below another root.
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("none")).expect("folders");
        std::fs::copy(&own, root.join("none/app")).expect("copied");
        let below = Finder {
            root: Some(root.clone()),
            ..Finder::default()
        };
        assert_eq!(below.open(gone, id).expect("found").path, root.join("none/app"));
        assert!(
            matches!(below.open(gone, Some(&[1])), Err(FindError::Changed { .. })),
            "another build"
        );

        // By build-id in a cache.
        let cache = Cache::Debuginfod(folder.path().join("cache"));
        if let Some(id) = id {
            let cached = cache.path(id);
            std::fs::create_dir_all(cached.parent().expect("a folder")).expect("folders");
            std::fs::copy(&own, &cached).expect("copied");
            let finder = Finder {
                caches: vec![cache],
                ..Finder::default()
            };
            assert_eq!(finder.open(gone, Some(id)).expect("found").path, cached);
        }

        // Named files go first, even if they are the wrong ones: the user said so.
        let named = folder.path().join("app");
        std::fs::copy(&own, &named).expect("copied");
        let finder = Finder {
            named: vec![Binary::open(&named).expect("read")],
            ..below
        };
        assert_eq!(finder.open(gone, id).expect("found").path, named);
        assert!(Finder::new(&[PathBuf::from("/none")], None).is_err());
    }
}
