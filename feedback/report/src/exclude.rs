//! Leaves functions out of a profile, for instance those of threads that spin: shares then refer to the rest.

use super::estimated::NoSuchFunction;
use super::names::{Names, meant};
use super::tables::percent;
use pleach_profile::Profile;
use rustc_hash::FxHashSet;

/// What was left out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Excluded {
    /// Linkage names, each with its share of the executions of all blocks before anything was left out.
    pub functions: Vec<(String, f64)>,
}

/// Removes functions from a profile: all of each name, linkage name or identifier.
///
/// # Errors
/// Fails if the profile does not have one of them.
pub fn exclude(profile: &mut Profile, names: &[String]) -> Result<Excluded, NoSuchFunction> {
    let mut chosen = FxHashSet::default();
    for name in names {
        let found = meant(profile.functions.iter(), |f| (&f.name, f.id.to_string()), name);
        let found = found.map_err(|similar| NoSuchFunction {
            name: name.clone(),
            similar,
        })?;
        chosen.extend(found.into_iter().map(|f| (f.id, f.cfg_hash)));
    }
    let executions = |blocks: &[u64]| blocks.iter().map(|&count| count as f64).sum::<f64>();
    let all: f64 = profile.functions.iter().map(|f| executions(&f.blocks)).sum();
    let mut excluded = Excluded::default();
    profile.functions.retain(|f| {
        let is_kept = !chosen.contains(&(f.id, f.cfg_hash));
        if !is_kept {
            let share = if all > 0.0 { executions(&f.blocks) / all } else { 0.0 };
            excluded.functions.push((f.name.clone(), share));
        }
        is_kept
    });
    excluded
        .functions
        .sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(excluded)
}

impl Excluded {
    /// One line for people; empty if nothing was left out.
    pub fn to_text(&self, names: &Names) -> String {
        let Some(sum) = self.functions.iter().map(|(_, share)| *share).reduce(|a, b| a + b) else {
            return String::new();
        };
        let list = self.functions.iter();
        let list = list.map(|(name, share)| format!("{} ({})", names.shown(name), percent(*share)));
        format!(
            "left out: {} of all block executions, of {}; shares refer to the rest",
            percent(sum),
            list.collect::<Vec<_>>().join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::{FunctionGuid, FunctionId};
    use pleach_profile::FunctionProfile;

    fn profile() -> Profile {
        let function = |(name, count): (&str, u64)| FunctionProfile {
            id: FunctionId {
                guid: FunctionGuid::of_name(name),
                ..FunctionId::default()
            },
            name: name.to_owned(),
            blocks: vec![count],
            ..FunctionProfile::default()
        };
        Profile {
            functions: [("spin", 60), ("work", 30), ("idle", 10)].map(function).to_vec(),
            ..Profile::default()
        }
    }

    #[test]
    fn shares_refer_to_the_rest() {
        let mut profile = profile();
        let excluded = exclude(&mut profile, &["idle".to_owned(), "spin".to_owned()]).expect("known");
        insta::assert_snapshot!(excluded.to_text(&Names::default()), @"left out: 70.00 % of all block executions, of spin (60.00 %), idle (10.00 %); shares refer to the rest");
        assert_eq!(profile.functions.len(), 1);
        assert_eq!(profile.functions[0].name, "work");
    }

    #[test]
    fn nothing_is_left_out_by_mistake() {
        let mut profile = profile();
        assert_eq!(exclude(&mut profile, &[]), Ok(Excluded::default()));
        assert_eq!(Excluded::default().to_text(&Names::default()), "");
        let error = exclude(&mut profile, &["spi".to_owned()]).unwrap_err();
        assert_eq!(error.similar, ["spin"]);
        assert_eq!(profile.functions.len(), 3);
    }
}
