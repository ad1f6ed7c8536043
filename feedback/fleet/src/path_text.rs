//! Paths as text: `entry 0 3 5 back 3` begins at the function's entry and ends by the back edge from block 5 to block 3.
//! A path that begins elsewhere has `inside`, and other ends are `exit`, `call`, and `cut` with a block. Windows are
//! paths with ` | ` between them.

use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path, Start};
use std::fmt::Write;

const BETWEEN: &str = " | ";

/// A path as text.
pub fn path(path: &Path) -> String {
    let mut out = String::with_capacity(16 + 3 * path.blocks.len());
    out += match path.start {
        Start::Entry => "entry",
        Start::Inside => "inside",
    };
    for block in &path.blocks {
        let _ = write!(out, " {}", block.0);
    }
    let _ = match path.end {
        End::Exit => write!(out, " exit"),
        End::Call => write!(out, " call"),
        End::Back(to) => write!(out, " back {}", to.0),
        End::Cut(to) => write!(out, " cut {}", to.0),
    };
    out
}

/// Reads [`path`].
pub fn read_path(text: &str) -> Option<Path> {
    let mut words = text.split(' ');
    let start = match words.next()? {
        "entry" => Start::Entry,
        "inside" => Start::Inside,
        _ => return None,
    };
    let mut blocks = Vec::new();
    let end = loop {
        let word = words.next()?;
        match word.parse() {
            Ok(block) => blocks.push(BlockIndex(block)),
            Err(_) => break word,
        }
    };
    let mut to = || Some(BlockIndex(words.next()?.parse().ok()?));
    let end = match end {
        "exit" => End::Exit,
        "call" => End::Call,
        "back" => End::Back(to()?),
        "cut" => End::Cut(to()?),
        _ => return None,
    };
    words.next().is_none().then_some(Path { start, blocks, end })
}

/// A window as text.
pub fn window(paths: &[Path]) -> String {
    paths.iter().map(path).collect::<Vec<_>>().join(BETWEEN)
}

/// Reads [`window`].
pub fn read_window(text: &str) -> Option<Vec<Path>> {
    text.split(BETWEEN).map(read_path).collect()
}

/// Blocks as text.
pub fn blocks(blocks: &[BlockIndex]) -> String {
    blocks
        .iter()
        .map(|block| block.0.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads [`blocks`].
pub fn read_blocks(text: &str) -> Option<Vec<BlockIndex>> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.map(|word| word.parse().ok().map(BlockIndex)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let path_of = |start, numbers: &[u32], end| Path {
            start,
            blocks: numbers.iter().copied().map(BlockIndex).collect(),
            end,
        };
        let all = [
            path_of(Start::Entry, &[0, 3, 5], End::Back(BlockIndex(3))),
            path_of(Start::Inside, &[7], End::Exit),
            path_of(Start::Inside, &[2, 1], End::Cut(BlockIndex(9))),
            path_of(Start::Entry, &[0], End::Call),
        ];
        assert_eq!(path(&all[0]), "entry 0 3 5 back 3");
        for one in &all {
            assert_eq!(read_path(&path(one)).as_ref(), Some(one));
        }
        assert_eq!(read_window(&window(&all)).as_deref(), Some(&all[..]));
        assert_eq!(read_blocks(&blocks(&all[0].blocks)).as_ref(), Some(&all[0].blocks));
        assert_eq!(read_blocks(""), Some(vec![]));
        for bad in [
            "",
            "entry",
            "entry 0",
            "entry 0 back",
            "entry 0 exit 3",
            "middle 0 exit",
            "entry x exit",
        ] {
            assert_eq!(read_path(bad), None, "{bad}");
        }
    }
}
