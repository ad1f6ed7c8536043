//! Whether a record has the shape of a graph: hashes may collide, and files may be damaged.

use crate::{FunctionProfile, ValueSite};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path};

impl FunctionProfile {
    /// Checks that every block, edge and call of the record is in the graph.
    ///
    /// # Errors
    /// The first part that does not match.
    pub fn check_shape(&self, cfg: &Cfg) -> Result<(), &'static str> {
        let blocks = cfg.blocks.len();
        let is_block = |block: &BlockIndex| block.index() < blocks;
        let is_path = |path: &Path| {
            let restart = match &path.end {
                End::Back(to) | End::Cut(to) => is_block(to),
                End::Exit | End::Call => true,
            };
            restart && path.blocks.iter().all(is_block)
        };
        let mut windows = self.windows.iter().flat_map(|window| &window.paths);
        let shape = [
            ("it has another number of blocks", self.blocks.len() == blocks),
            ("it has another number of edges", self.edges.len() == cfg.edge_count()),
            (
                "a call is not in the graph",
                self.call_targets
                    .iter()
                    .all(|site| (site.call as usize) < cfg.calls.len()),
            ),
            (
                "an operand is not in the graph",
                self.values.iter().all(|operand| match operand.site {
                    ValueSite::Length(call) | ValueSite::LengthPrediction(call) => (call as usize) < cfg.calls.len(),
                    ValueSite::Divisor(block) | ValueSite::SwitchPrediction(block) => is_block(&block),
                }),
            ),
            (
                "a path leaves the graph",
                self.paths.iter().all(|path| is_path(&path.path))
                    && windows.all(is_path)
                    && self.called.iter().all(|called| is_path(&called.path)),
            ),
            (
                "a predicted branch is not in the graph",
                self.predictions.iter().all(|prediction| is_block(&prediction.block)),
            ),
            (
                "its coverage is of another number of blocks",
                self.coverage.is_empty() || self.coverage.len() == blocks,
            ),
        ];
        match shape.iter().find(|(_, fits)| !fits) {
            None => Ok(()),
            Some((what, _)) => Err(what),
        }
    }
}
